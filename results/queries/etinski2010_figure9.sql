-- Etinski et al. 2010, Figure 9: mean bounded slowdown (bound 600 s) on enlarged machines with BSLDthreshold 2, beside
-- that of the original machine at full speed.
with runs as (
    select * from read_parquet('results/data/etinski2010/tasks/*.parquet')
),
base as (
    select workload, bsld_tau600s_mean as bsld_full_speed from runs where gear_rule = 'top' and size_factor = 1
)
select
    workload, size_factor, wq_threshold,
    round(bsld_tau600s_mean, 4) as bsld,
    round(bsld_full_speed, 4) as bsld_original_full_speed
from runs join base using (workload)
where bsld_threshold = 2 and wq_threshold in (0, 'infinity')
order by workload, wq_threshold, size_factor;
