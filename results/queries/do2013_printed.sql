-- Do et al. 2013, section 3.2: the printed values beside those of 10^8 jobs of the Common Queue (experiment do2013_long).
-- The printed waits lie 1% to 9% below the exact ones of the model's Markov chain, which are 0.000503 s and
-- 0.308750 s (EE at 50% and 90%).
with published(metric, server_priority, target_utilization, published) as (
    values
        ('energy_per_job_idle_on_j', 'energy-efficiency', 0.5, 1769.27),
        ('energy_per_job_idle_on_j', 'high-performance', 0.5, 1989.82),
        ('energy_per_job_idle_off_j', 'energy-efficiency', 0.5, 1399),
        ('energy_per_job_idle_off_j', 'high-performance', 0.5, 1649),
        ('energy_per_job_idle_off_j', 'energy-efficiency', 0.9, 1510),
        ('energy_per_job_idle_off_j', 'high-performance', 0.9, 1535),
        ('service_s_mean', 'energy-efficiency', 0.5, 1.58441),
        ('wait_s_mean', 'energy-efficiency', 0.5, 0.00046),
        ('wait_s_mean', 'energy-efficiency', 0.9, 0.302311)
),
ours as (
    unpivot (
        select
            server_priority, target_utilization, energy_per_job_idle_on_j, energy_per_job_idle_off_j, service_s_mean,
            wait_s_mean
        from read_parquet('results/data/do2013_long/tasks/*.parquet')
    )
    on energy_per_job_idle_on_j, energy_per_job_idle_off_j, service_s_mean, wait_s_mean into name metric value found
)
select
    metric, server_priority, target_utilization, round(found, 6) as found, published,
    round(found / published - 1, 5) as difference_relative
from published join ours using (metric, server_priority, target_utilization)
order by metric, target_utilization, server_priority;
