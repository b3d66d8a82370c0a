-- What online simulation (Lawson & Smirni 2005) depends on besides its period: service level, estimates, a floor for the
-- active processors, given numbers of them; beside all processors, and the paper's own setting (week, 200).
with runs as (
    select *, case
        when policy like 'levels-%' then 'given levels'
        when policy = 'period' then 'paper'
        when policy = 'service-level' then 'service level ' || ols_sla_slowdown::int
        else policy end as variant
    from read_parquet('results/data/lawson2005_sensitivity/tasks/*.parquet')
    where policy <> 'period' or ols_period_s = 604800
)
select
    workload, estimates, variant,
    round(slowdown_lawson_tau10s_mean, 4) as slowdown,
    round(utilization_active, 4) as utilization_active,
    round(active_savings, 4) as active_savings,
    round(over_sla_share, 4) as over_sla_share,
    active_changes_count
from runs
order by workload, estimates, variant;
