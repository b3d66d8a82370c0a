-- Gaussier et al. 2015 (SC'15): the learned model with the least mean bounded slowdown on each log and the greatest of all models.
-- The sweep sc15_learned has 5,760 models a log; replace the name for those.
select
    workload, min(bsld_tau10s_mean) as bsld_best, max(bsld_tau10s_mean) as bsld_worst,
    arg_min(
        concat_ws(' ', policy, corrector, loss_over, loss_over_factor, loss_under, loss_under_factor, loss_threshold_s, loss_weight),
        bsld_tau10s_mean
    ) as best
from read_parquet('results/data/sc15_triples/tasks/*.parquet')
group by workload
order by workload;
