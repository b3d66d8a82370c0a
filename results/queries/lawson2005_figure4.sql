-- Lawson & Smirni 2005, Figure 4: utilization of the active processors by week, two-level policy beside all processors.
with points as (
    select * from read_parquet('results/data/lawson2005/series/*.parquet')
),
begins as (
    select workload, min(x) as first_submit_s from points where series = 'week_arrivals_count' group by workload
)
select workload, ((x - first_submit_s) / 604800)::int as week,
    round(max(value) filter (policy = 'all'), 4) as utilization_all,
    round(max(value) filter (policy = 'two-level'), 4) as utilization_two_level
from points join begins using (workload)
where series = 'week_utilization'
group by workload, week
order by workload, week;
