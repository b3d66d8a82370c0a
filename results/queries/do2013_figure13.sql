-- Do et al. 2013, Figure 13: energy per job (J) by load of the present cluster, slowed to 70% against full speed; Common Queue, idle servers off.
pivot (
    select target_utilization, server_priority, platform, round(energy_per_job_j, 4) as energy_per_job_j
    from read_parquet('results/data/do2013_dvfs_load/tasks/*.parquet')
)
on platform in ('full', 'slowed') using first(energy_per_job_j)
order by server_priority, target_utilization;
