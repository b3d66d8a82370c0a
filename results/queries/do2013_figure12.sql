-- Do et al. 2013, Figure 12: mean response time (s) by load of the present cluster, slowed to 70% against full speed; Common Queue, idle servers off.
pivot (
    select target_utilization, server_priority, platform, round(turnaround_s_mean, 4) as turnaround_s_mean
    from read_parquet('results/data/do2013_dvfs_load/tasks/*.parquet')
)
on platform in ('full', 'slowed') using first(turnaround_s_mean)
order by server_priority, target_utilization;
