-- Gaussier et al. 2015 (SC'15): every complete row of the study's tables beside ours, nine metrics each, and those that differ.
-- The tables are in the study's public data: `git clone https://github.com/dinesh121991/predictsim` in the current folder.
with tables as (
    select *, regexp_extract(filename, 'data/([^/]+)/sim_analysis', 1) as workload
    from read_csv(
        'predictsim/experiments/data/*/sim_analysis/metrics_complete', delim = ' ', header = false, skip = 1,
        nullstr = 'NA', filename = true, null_padding = true, all_varchar = true,
        names = [
            'row', 'name', 'length', 'avgft', 'maxft', 'RMSFT', 'avgstretch', 'maxstretch', 'RMSS', 'avgbsld', 'maxbsld',
            'RMSBSLD', 'hash', 'simultime', 'scheduler', 'corrector', 'predictor', 'prightside', 'prightparam', 'pleftside',
            'pleftparam', 'pthreshold', 'pweight'
        ]
    )
),
published as (
    select
        workload, cast(length as bigint) as jobs_count,
        case scheduler when 'easy_plus_plus_scheduler' then 'plus-plus' else 'prediction-backfill' end as policy,
        case corrector
            when 'tsafrir' then 'increments' when 'recursive_doubling' then 'doubling' else 'request'
        end as corrector,
        prightside as loss_over, cast(prightparam as double) as loss_over_factor,
        pleftside as loss_under, cast(pleftparam as double) as loss_under_factor,
        cast(pthreshold as double) as loss_threshold_s, pweight as loss_weight,
        [cast(v as double) for v in
            [avgft, maxft, RMSFT, avgstretch, maxstretch, RMSS, avgbsld, maxbsld, RMSBSLD]] as theirs
    from tables
    where predictor = 'predictor_sgdlinear' and pweight is not null
),
ours as (
    select
        workload, jobs_count, policy, corrector, loss_over, loss_over_factor, loss_under, loss_under_factor, loss_threshold_s,
        loss_weight,
        [
            turnaround_s_mean, turnaround_s_max, turnaround_s_rms, slowdown_mean, slowdown_max, slowdown_rms,
            bsld_tau10s_mean, bsld_tau10s_max, bsld_tau10s_rms
        ] as ours
    from read_parquet('results/data/sc15_learned/tasks/*.parquet')
),
compared as (
    select
        workload, published.jobs_count = ours.jobs_count as complete,
        list_max([abs(ours[i] / theirs[i] - 1) for i in range(1, 10)]) as difference
    from published
    join ours using (
        workload, policy, corrector, loss_over, loss_over_factor, loss_under, loss_under_factor, loss_threshold_s, loss_weight
    )
)
select
    workload, count(*) as rows_published, count(*) filter (complete and difference is not null) as rows_complete,
    count(*) filter (complete and difference < 1e-13) as rows_equal,
    max(difference) filter (complete) as greatest_difference
from compared
group by workload
order by workload;
