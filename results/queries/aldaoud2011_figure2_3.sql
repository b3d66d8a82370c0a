-- Al-Daoud et al. 2011, Figures 2 and 3: energy saving against FCFS and mean completion time over the target capacity c,
-- with the busy powers of Table 4 (heterogeneous) and with powers by group (homogeneous); and section 5.3's scaling of
-- frequencies, beside the published change of the completion time and of the energy.
with runs as (
    select platform, policy, coalesce(lpas_capacity, -1) as target, any_value(lp_capacity) as c,
        avg(turnaround_s_mean) as w, avg(energy_total_j) as energy
    from read_parquet('results/data/aldaoud2011_cluster/tasks/*.parquet')
    group by all
),
base as (
    select platform, w as w_fcfs, energy as energy_fcfs from runs where policy = 'fcfs'
),
published(platform, policy, saving, slower) as (
    values ('heterogeneous', 'dvs', -75.64, 93.78), ('homogeneous', 'dvs', -81.79, 92.69)
)
select
    platform, policy, round(c, 4) as c,
    round(100 * (1 - energy / energy_fcfs), 2) as saving_percent, published.saving as published_saving_percent,
    round(w, 6) as w_s, round(100 * (w / w_fcfs - 1), 2) as slower_percent, published.slower as published_slower_percent
from runs join base using (platform) left join published using (platform, policy)
order by platform, policy, c;
