-- Zhang et al. 2014, Figure 3: CPU utilization of the priority scheduler alone at 3.0 GHz, mean of 40 job lists of each size,
-- beside the published one. The distribution of one list of each size is the series cpu_utilization_time_share of
-- tracsim2014_series.
with published(workload, utilization, high_share) as (
    values ('large', 0.775, 0.723), ('mixed', 0.783, 0.724), ('small', 0.838, 0.874)
)
select
    workload,
    round(avg(cpu_utilization), 3) as cpu_utilization, any_value(utilization) as published,
    round(avg(cpu_utilization_high_share), 3) as at_least_75_percent, any_value(high_share) as published_share
from read_parquet('results/data/tracsim2014/tasks/*.parquet') left join published using (workload)
where policy = 'priority-alone'
group by workload
order by workload;
