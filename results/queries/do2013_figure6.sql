-- Do et al. 2013, Figure 6: mean wait (s) by load, with its half-width, the probability of waiting, and the mean wait of
-- the jobs that wait. The paper prints 0.00046 s (common) and 0.00557 s (separate) at 50%, 0.302311 s and 0.693619 s at
-- 90%, all with energy efficiency.
select
    target_utilization, server_priority, buffering,
    round(wait_s_mean, 6) as wait_s, round(wait_s_half_width, 6) as half_width_s,
    round(waited_share, 5) as waited_share, round(wait_s_mean_of_waited, 4) as wait_s_of_waited
from read_parquet('results/data/do2013/tasks/*.parquet')
order by server_priority, target_utilization, wait_s_mean;
