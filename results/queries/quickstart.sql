-- Quickstart: what does lowering the processor frequency cost in waiting, and what does it save?
-- Means over the seeds; energy relative to the same jobs and machine at full speed (EASY, first come first served).
with runs as (
    select * from read_parquet('results/data/quickstart/tasks/*.parquet')
),
full_speed as (
    select interarrival_factor, size_factor, seed, energy_total_j
    from runs where gear_rule = 'top' and queue_order = 'fcfs' and backfill = 'easy'
)
select
    policy, queue_order, backfill, bsld_threshold, wq_threshold, interarrival_factor, size_factor,
    count(*) as seeds_count,
    round(avg(bsld_tau10s_mean), 2) as bsld_tau10s,
    round(avg(wait_s_mean), 0) as wait_s,
    round(avg(utilization_installed), 3) as utilization,
    round(avg(runs.energy_total_j / full_speed.energy_total_j), 4) as energy_relative
from runs left join full_speed using (interarrival_factor, size_factor, seed)
group by all
order by interarrival_factor desc, size_factor, energy_relative, bsld_tau10s;
