-- Zhang et al. 2014, Figure 6: CPU utilization by policy and size of the jobs, mean of 40 lists; suspended nodes do not count,
-- or do.
select
    experiment, workload, policy,
    round(avg(cpu_utilization), 3) as cpu_utilization,
    round(avg(cpu_utilization_with_suspended), 3) as with_suspended
from read_parquet([
    'results/data/tracsim2014/tasks/*.parquet', 'results/data/tracsim2014_caps30/tasks/*.parquet'
])
where power_cap <> 'none'
group by experiment, workload, policy
order by experiment, workload, policy;
