-- Etinski et al. 2010, Figure 8: energy of enlarged machines with BSLDthreshold 2 and no limit on the queue, relative to the
-- original machine at full speed.
with runs as (
    select * from read_parquet('results/data/etinski2010/tasks/*.parquet')
),
base as (
    select workload, energy_computational_j as computational_j, energy_total_j as total_j
    from runs where gear_rule = 'top' and size_factor = 1
)
select
    workload, size_factor,
    round(energy_computational_j / computational_j, 5) as energy_computational_relative,
    round(energy_total_j / total_j, 5) as energy_total_relative
from runs join base using (workload)
where bsld_threshold = 2 and wq_threshold = 'infinity'
order by workload, size_factor;
