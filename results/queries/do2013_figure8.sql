-- Do et al. 2013, Figure 8: distribution of the response times at a load of 90%, the schemes side by side.
pivot (
    select x as response_s, server_priority, buffering, round(value, 5) as share
    from read_parquet('results/data/do2013/series/*.parquet')
    join (
        select task_id, target_utilization, server_priority, buffering
        from read_parquet('results/data/do2013/tasks/*.parquet')
    ) using (task_id)
    where series = 'response_time_cdf' and abs(target_utilization - 0.9) < 1e-9 and x <= 12
)
on buffering in ('common', 'class', 'separate') using first(share)
order by server_priority, response_s;
