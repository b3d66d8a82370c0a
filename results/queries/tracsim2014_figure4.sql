-- Zhang et al. 2014, Figure 4: power of the cluster and its cap over time with one list of mixed jobs, by policy. Each value
-- holds from x on.
select policy, series, x as from_s, value as watts
from read_parquet('results/data/tracsim2014_series/series/*.parquet')
where workload = 'mixed' and series in ('power_w', 'power_cap_w') and policy <> 'priority-alone'
order by policy, series, x;
