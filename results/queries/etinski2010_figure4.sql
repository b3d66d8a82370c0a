-- Etinski et al. 2010, Figure 4: number of jobs run below the top frequency on the original machine.
-- jobs_by_gear lists all gears, slowest first.
select workload, bsld_threshold, wq_threshold, reduced_count, gear_jobs_count as jobs_by_gear
from read_parquet('results/data/etinski2010/tasks/*.parquet')
where size_factor = 1 and gear_rule = 'bsld'
order by workload, bsld_threshold, wq_threshold;
