-- Lawson & Smirni 2005, Figure 2: slowdown, utilization of the active processors, and share of processors saved, for all
-- processors, the two-level policy and online simulation (OLS); the slowdown also as a multiple of that of all processors.
with runs as (
    select * from read_parquet('results/data/lawson2005/tasks/*.parquet')
)
select
    workload, runs.policy, machine_procs, two_level_procs,
    round(slowdown_lawson_tau10s_mean, 4) as slowdown,
    round(slowdown_lawson_tau10s_mean / everything.slowdown, 3) as slowdown_factor,
    round(utilization_active, 4) as utilization_active,
    round(active_savings, 4) as active_savings,
    active_changes_count
from runs
join (select workload, slowdown_lawson_tau10s_mean as slowdown from runs where policy = 'all') as everything using (workload)
order by workload, case runs.policy when 'all' then 1 when 'two-level' then 2 else 3 end;
