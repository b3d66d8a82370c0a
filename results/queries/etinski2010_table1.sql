-- Etinski et al. 2010, Table 1: mean bounded slowdown (bound 600 s) at full speed on the original machines.
with published(workload, bsld_published) as (
    values ('CTC', 4.66), ('SDSC', 24.91), ('SDSCBlue', 5.15), ('LLNLThunder', 1.0), ('LLNLAtlas', 1.08)
)
select
    workload, machine_procs, jobs_count,
    round(bsld_tau600s_mean, 4) as bsld, bsld_published,
    round(bsld_tau600s_mean / bsld_published - 1, 4) as difference_relative
from read_parquet('results/data/etinski2010/tasks/*.parquet')
left join published using (workload)
where gear_rule = 'top' and size_factor = 1
order by workload;
