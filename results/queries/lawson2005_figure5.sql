-- Lawson & Smirni 2005, Figure 5: mean slowdown of the jobs that end in a week, online simulation (OLS) beside all
-- processors.
with points as (
    select * from read_parquet('results/data/lawson2005/series/*.parquet')
),
begins as (
    select workload, min(x) as first_submit_s from points where series = 'week_arrivals_count' group by workload
)
select workload, ((x - first_submit_s) / 604800)::int as week,
    round(max(value) filter (policy = 'all'), 4) as slowdown_all,
    round(max(value) filter (policy = 'ols'), 4) as slowdown_ols
from points join begins using (workload)
where series = 'week_slowdown_lawson_tau10s_mean'
group by workload, week
order by workload, week;
