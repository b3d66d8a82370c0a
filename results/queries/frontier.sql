-- The energy-slowdown Pareto front of the sweep `frontier`: combinations that no other one beats in both, one of those
-- that come out alike. A run that exceeded its cap, however shortly, is none of them. Relative to EASY on the whole machine
-- at the top gear without a cap.
with runs as (
    select *,
        energy_total_j / first_value(energy_total_j) over base as energy_relative,
        bsld_tau600s_mean / first_value(bsld_tau600s_mean) over base as bsld_relative
    from read_parquet('results/data/frontier/tasks/*.parquet')
    window base as (
        partition by workload
        order by gear_rule <> 'top', capacity_rule <> 'none', power_cap <> 'none'
    )
),
kept as (
    select * from runs where coalesce(power_cap_excess_max_w, 0) = 0
)
select distinct on (one.energy_total_j, one.bsld_tau600s_mean)
    gear_rule, bsld_threshold, wq_threshold, capacity_rule, ols_period_s, ols_sla_slowdown, cap_schedule_w[1] as cap_w,
    round(energy_relative, 4) as energy_relative, round(bsld_relative, 3) as bsld_relative,
    round(bsld_tau600s_mean, 2) as bsld_tau600s_mean
from kept as one
where not exists (
    select 1
    from kept as other
    where other.workload = one.workload
        and other.energy_relative <= one.energy_relative and other.bsld_relative <= one.bsld_relative
        and (other.energy_relative < one.energy_relative or other.bsld_relative < one.bsld_relative)
)
order by energy_relative;
