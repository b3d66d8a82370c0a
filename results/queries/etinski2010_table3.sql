-- Etinski et al. 2010, Table 3: mean wait (s) at full speed, and with BSLDthreshold 2 at WQthreshold 0 and without
-- limit, on the original machine and on one enlarged by 50%.
with runs as (
    select workload, size_factor, wait_s_mean,
        case when gear_rule = 'top' then 'full speed' when wq_threshold = 0 then 'WQ 0' else 'no limit' end as run
    from read_parquet('results/data/etinski2010/tasks/*.parquet')
    where (gear_rule = 'top' and size_factor = 1)
       or (bsld_threshold = 2 and wq_threshold in (0, 'infinity') and size_factor in (1, 1.5))
),
published(workload, top, wq0, unlimited, wq0_150, unlimited_150) as (
    values ('CTC', 7107, 12361, 16060, 2980, 4183), ('SDSC', 36001, 35946, 45845, 9202, 11713),
           ('SDSCBlue', 4798, 6587, 8766, 2351, 3153), ('LLNLThunder', 0, 1927, 6876, 379, 1877),
           ('LLNLAtlas', 69, 1841, 6691, 708, 2807)
),
ours as (
    select workload,
        max(wait_s_mean) filter (run = 'full speed') as top,
        max(wait_s_mean) filter (run = 'WQ 0' and size_factor = 1) as wq0,
        max(wait_s_mean) filter (run = 'no limit' and size_factor = 1) as unlimited,
        max(wait_s_mean) filter (run = 'WQ 0' and size_factor = 1.5) as wq0_150,
        max(wait_s_mean) filter (run = 'no limit' and size_factor = 1.5) as unlimited_150
    from runs group by workload
)
select workload,
    round(ours.top, 1) as full_speed_s, published.top as published_s,
    round(ours.wq0, 1) as wq0_s, published.wq0 as published_wq0_s,
    round(ours.unlimited, 1) as no_limit_s, published.unlimited as published_no_limit_s,
    round(ours.wq0_150, 1) as wq0_larger_s, published.wq0_150 as published_wq0_larger_s,
    round(ours.unlimited_150, 1) as no_limit_larger_s, published.unlimited_150 as published_no_limit_larger_s
from ours left join published using (workload)
order by workload;
