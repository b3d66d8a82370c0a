-- Do et al. 2013, Figure 9: energy per job (J) when idle servers stay on. The paper prints 1769.27 (energy efficiency) and
-- 1989.82 (high performance) at 50%, and a limit of 1550.
pivot (
    select target_utilization, server_priority, buffering, round(energy_per_job_idle_on_j, 2) as energy_j
    from read_parquet('results/data/do2013/tasks/*.parquet')
)
on buffering in ('common', 'class', 'separate') using first(energy_j)
order by server_priority, target_utilization;
