-- Do et al. 2013, Figure 5: mean response time (s) by load, one row a point of (a) and (b), the schemes side by side.
pivot (
    select target_utilization, server_priority, buffering, round(turnaround_s_mean, 5) as response_s
    from read_parquet('results/data/do2013/tasks/*.parquet')
)
on buffering in ('common', 'class', 'separate') using first(response_s)
order by server_priority, target_utilization;
