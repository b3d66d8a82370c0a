-- Al-Daoud et al. 2011, Table 6: energy saving against FCFS, of the means over the replications, and mean completion
-- time W with the relative half-width of its 95% interval (t quantile of 29 degrees of freedom), beside the published.
with runs as (
    select policy, coalesce(lpas_capacity_share, -1) as share, count(*) as replications,
        any_value(lp_capacity) as c, avg(turnaround_s_mean) as w, avg(energy_total_j) as energy,
        stddev_samp(turnaround_s_mean) / sqrt(count(*)) as error
    from read_parquet('results/data/aldaoud2011/tasks/*.parquet')
    where platform = 'structured'
    group by all
),
published(policy, share, saving, w) as (
    values ('ordered-beta', -1, 40.38, 0.177), ('lpas', 1, 40.93, 0.167), ('lpas', 0.5, 57.13, 0.20),
           ('pme', -1, 0.009, 0.164), ('fcfs', -1, 0, 0.163)
)
select
    runs.policy, round(c, 4) as c, replications,
    round(100 * (1 - energy / (select energy from runs where policy = 'fcfs')), 2) as saving_percent,
    published.saving as published_saving_percent,
    round(runs.w, 4) as w_s, published.w as published_w_s,
    round(100 * 2.045229642 * error / runs.w, 2) as accuracy_percent
from runs left join published using (policy, share)
order by saving_percent;
