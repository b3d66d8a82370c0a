-- Lawson & Smirni 2005, Figure 1: by week, arriving jobs, mean demand (processor-days), and the utilization of the machine
-- by the log's own schedule.
with points as (
    select * from read_parquet('results/data/lawson2005/series/*.parquet') where policy = 'all'
),
begins as (
    select workload, min(x) as first_submit_s from points where series = 'week_arrivals_count' group by workload
)
select workload, ((x - first_submit_s) / 604800)::int as week,
    max(value) filter (series = 'week_arrivals_count')::int as arrivals,
    round(max(value) filter (series = 'week_demand_proc_days'), 4) as demand_proc_days,
    round(max(value) filter (series = 'week_log_utilization'), 4) as log_utilization
from points join begins using (workload)
where series like 'week_%'
group by workload, week
order by workload, week;
