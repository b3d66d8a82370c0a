-- Lawson & Smirni 2005, Figure 7: share of the jobs that end in a week with a slowdown above 200, online simulation
-- (OLS) beside all processors.
with points as (
    select * from read_parquet('results/data/lawson2005/series/*.parquet')
),
begins as (
    select workload, min(x) as first_submit_s from points where series = 'week_arrivals_count' group by workload
)
select workload, ((x - first_submit_s) / 604800)::int as week,
    round(max(value) filter (policy = 'all'), 4) as over_sla_share_all,
    round(max(value) filter (policy = 'ols'), 4) as over_sla_share_ols
from points join begins using (workload)
where series = 'week_over_sla_share'
group by workload, week
order by workload, week;
