-- Do et al. 2013, Figure 14: mean response time (s) by arrival rate, slowed to 70% against full speed; Common Queue, idle servers off.
pivot (
    select arrival_rate_per_s, server_priority, platform, round(turnaround_s_mean, 4) as turnaround_s_mean
    from read_parquet('results/data/do2013_dvfs_rate/tasks/*.parquet')
)
on platform in ('full', 'slowed') using first(turnaround_s_mean)
order by server_priority, arrival_rate_per_s;
