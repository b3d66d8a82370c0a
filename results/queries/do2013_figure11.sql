-- Do et al. 2013, Figure 11: energy per job (J) with idle servers on and off, and the share that switching off saves.
select
    target_utilization, server_priority, buffering,
    round(energy_per_job_idle_on_j, 2) as idle_on_j, round(energy_per_job_idle_off_j, 2) as idle_off_j,
    round(1 - energy_per_job_idle_off_j / energy_per_job_idle_on_j, 4) as saved_share
from read_parquet('results/data/do2013/tasks/*.parquet')
order by server_priority, buffering, target_utilization;
