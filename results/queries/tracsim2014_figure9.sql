-- Zhang et al. 2014, Figure 9: nodes by CPU frequency over time, one list of mixed jobs under PDRC. Each value holds from x
-- on; idle nodes are at the lowest frequency.
select x as from_s, gears_ghz[level + 1] as ghz, value as nodes
from read_parquet('results/data/tracsim2014_series/series/*.parquet')
join (select task_id, gears_ghz from read_parquet('results/data/tracsim2014_series/tasks/*.parquet')) using (task_id)
where workload = 'mixed' and policy = 'pdrc' and series = 'procs_by_gear'
order by ghz, x;
