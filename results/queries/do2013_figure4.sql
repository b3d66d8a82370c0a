-- Do et al. 2013, Figure 4: mean service time (s) by load; it tends to 24/18 = 4/3 s as the load does to 1.
select
    target_utilization, server_priority, buffering,
    round(service_s_mean, 5) as service_s, round(service_s_half_width, 5) as half_width_s
from read_parquet('results/data/do2013/tasks/*.parquet')
order by server_priority, target_utilization, buffering;
