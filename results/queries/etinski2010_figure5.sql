-- Etinski et al. 2010, Figure 5: mean bounded slowdown (bound 600 s) on the original machine; full speed first.
select workload, gear_rule, bsld_threshold, wq_threshold, round(bsld_tau600s_mean, 4) as bsld
from read_parquet('results/data/etinski2010/tasks/*.parquet')
where size_factor = 1
order by workload, bsld_threshold nulls first, wq_threshold;
