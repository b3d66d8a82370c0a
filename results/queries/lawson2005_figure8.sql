-- Lawson & Smirni 2005, Figure 8: slowdown, utilization and share of processors saved by online simulation (OLS) with less
-- and less frequent simulations; here with exact and with users' estimates.
select
    workload, estimates, ols_period_s / 86400 as period_days,
    round(slowdown_lawson_tau10s_mean, 4) as slowdown,
    round(utilization_active, 4) as utilization_active,
    round(active_savings, 4) as active_savings,
    round(over_sla_share, 4) as over_sla_share,
    active_changes_count
from read_parquet('results/data/lawson2005_sensitivity/tasks/*.parquet')
where policy = 'period'
order by workload, estimates, period_days;
