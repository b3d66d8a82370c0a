-- Al-Daoud et al. 2011, Table 5: system load 1/lambda* and the load of each machine by the linear program (sum over
-- classes of delta*) at the midpoint, beside the share of time that it was busy in the simulation.
select
    arrivals_factor, round(1 / lp_lambda, 4) as system_load, round(lp_capacity, 4) as c,
    list_transform(range(1, 8), g -> round(list_sum(list_transform(range(0, 4), i -> lp_shares[7 * i + g])), 4)) as loads,
    list_transform(group_utilization, u -> round(u, 4)) as busy
from read_parquet('results/data/aldaoud2011_loads/tasks/*.parquet')
where workload = 'falling'
order by arrivals_factor desc;
