-- Etinski et al. 2010, Figure 3: energy on the original machine relative to full speed, without idle processors
-- (computational) and with them.
with runs as (
    select * from read_parquet('results/data/etinski2010/tasks/*.parquet') where size_factor = 1
),
base as (
    select workload, energy_computational_j as computational_j, energy_total_j as total_j from runs where gear_rule = 'top'
)
select
    workload, bsld_threshold, wq_threshold,
    round(energy_computational_j / computational_j, 5) as energy_computational_relative,
    round(energy_total_j / total_j, 5) as energy_total_relative
from runs join base using (workload)
where gear_rule = 'bsld'
order by workload, bsld_threshold, wq_threshold;
