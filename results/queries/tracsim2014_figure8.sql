-- Zhang et al. 2014, Figure 8: nodes by the priority of their jobs over time, one list of mixed jobs under PDRC. Each value
-- holds from x on.
select x as from_s, level as priority, value as nodes
from read_parquet('results/data/tracsim2014_series/series/*.parquet')
where workload = 'mixed' and policy = 'pdrc' and series = 'procs_by_priority'
order by level, x;
