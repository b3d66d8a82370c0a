-- Do et al. 2013, Table 3: server types ranked by performance and by energy efficiency, from the parameters of a run. The
-- printed efficiencies 0.64 and 0.66 of the first two types do not follow from the paper's Table 2: 0.62 and 0.68 do.
with types as (
    select unnest(class_ops_per_s) as ops_per_s, unnest(class_busy_w) as busy_w, generate_subscripts(class_busy_w, 1) as type
    from (select class_ops_per_s, class_busy_w from read_parquet('results/data/do2013/tasks/*.parquet') limit 1)
),
printed(type, performance_published, efficiency_published) as (values (1, 1.0, 0.64), (2, 0.82, 0.66), (3, 0.43, 1.0))
select
    type, ops_per_s, busy_w,
    round(ops_per_s / max(ops_per_s) over (), 4) as performance, performance_published,
    round(ops_per_s / busy_w / max(ops_per_s / busy_w) over (), 4) as efficiency, efficiency_published,
    rank() over (order by ops_per_s desc, busy_w) as performance_rank,
    rank() over (order by ops_per_s / busy_w desc) as efficiency_rank
from types join printed using (type)
order by type;
