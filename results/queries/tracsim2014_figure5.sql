-- Zhang et al. 2014, Figure 5 and section V.B: unused trapped capacity of mixed jobs, mean of 40 lists, under both readings of
-- the unpublished caps. What PDRC uses more than another policy is scaled to a year, and to the nodes that it could feed at
-- their greatest power (49,890 W on 150 nodes) and at that of 2.1 GHz (34,981 W).
with runs as (
    select * from read_parquet([
        'results/data/tracsim2014/tasks/*.parquet', 'results/data/tracsim2014_caps30/tasks/*.parquet'
    ])
    where workload = 'mixed' and power_cap <> 'none'
),
means as (
    select
        experiment, policy,
        avg(trapped_unused_share) as unused_share, avg(trapped_unused_kwh) as unused_kwh,
        avg(power_cap_violation_share) as violation_share,
        -- Unused power on average (kW): energy over time.
        avg(trapped_unused_kwh / (makespan_s / 3600)) as unused_kw
    from runs group by experiment, policy
),
published(policy, share, kwh, violation) as (
    values ('pdrc', 0.051, 7.21, 0), ('knapsack', 0.192, 26.12, 0), ('power-precedence', 0.164, 21.94, 0),
           ('performance-precedence', -0.281, -29.85, 0.743)
),
pdrc as (select experiment, unused_kw as pdrc_kw from means where policy = 'pdrc')
select
    experiment, policy,
    round(unused_share, 3) as unused_share, share as published_share,
    round(unused_kwh, 2) as unused_kwh, kwh as published_kwh,
    round(violation_share, 3) as violation_share, violation as published_violation,
    round((unused_kw - pdrc_kw) * 8760) as pdrc_more_kwh_a_year,
    floor((unused_kw - pdrc_kw) * 1000 / (49890.2 / 150)) as more_nodes_at_3_0_ghz,
    floor((unused_kw - pdrc_kw) * 1000 / (34981.0 / 150)) as more_nodes_at_2_1_ghz
from means join pdrc using (experiment) left join published using (policy)
order by experiment, unused_share;
