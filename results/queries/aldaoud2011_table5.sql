-- Al-Daoud et al. 2011, Table 5: system load 1/lambda* and the load of each machine by the linear program (sum over
-- classes of delta*) at the midpoint, beside the share of time that it was busy in the simulation.
with shares as (
    select
        arrivals_factor, lp_lambda, lp_capacity, group_utilization,
        unnest(lp_shares) as share, (generate_subscripts(lp_shares, 1) - 1) % 7 + 1 as machine
    from read_parquet('results/data/aldaoud2011_loads/tasks/*.parquet')
    where workload = 'falling'
),
machines as (
    select
        arrivals_factor, machine, any_value(lp_lambda) as lp_lambda, any_value(lp_capacity) as c,
        round(sum(share), 4) as load, round(any_value(group_utilization[machine]), 4) as busy
    from shares
    group by arrivals_factor, machine
)
select
    arrivals_factor, round(1 / any_value(lp_lambda), 4) as system_load, round(any_value(c), 4) as c,
    list(load order by machine) as loads, list(busy order by machine) as busy
from machines
group by arrivals_factor
order by arrivals_factor desc;
