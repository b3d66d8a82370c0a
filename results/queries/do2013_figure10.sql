-- Do et al. 2013, Figure 10: energy per job (J) when idle servers are switched off. The paper prints 1399 and 1649 at 50%,
-- 1510 and 1535 at 90% (energy efficiency, high performance).
pivot (
    select target_utilization, server_priority, buffering, round(energy_per_job_idle_off_j, 2) as energy_j
    from read_parquet('results/data/do2013/tasks/*.parquet')
)
on buffering in ('common', 'class', 'separate') using first(energy_j)
order by server_priority, target_utilization;
