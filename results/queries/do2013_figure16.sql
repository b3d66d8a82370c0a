-- Do et al. 2013, Figure 16: energy per job (J) by arrival rate, slowed to 70% against full speed; Common Queue, idle servers off.
pivot (
    select arrival_rate_per_s, server_priority, platform, round(energy_per_job_j, 4) as energy_per_job_j
    from read_parquet('results/data/do2013_dvfs_rate/tasks/*.parquet')
)
on platform in ('full', 'slowed') using first(energy_per_job_j)
order by server_priority, arrival_rate_per_s;
