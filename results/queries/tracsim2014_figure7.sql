-- Zhang et al. 2014, Figure 7: mean turnaround (s) by size of the jobs, policy and priority, mean of 40 lists. Below them, that
-- of PDRC over that of the policy in the same lists: the published one is 0.691 to 0.918 against power-precedence.
with runs as (
    select * from read_parquet([
        'results/data/tracsim2014/tasks/*.parquet', 'results/data/tracsim2014_caps30/tasks/*.parquet'
    ])
    where power_cap <> 'none'
),
pdrc as (select experiment, workload, seed, turnaround_s_mean as pdrc_s from runs where policy = 'pdrc')
select
    experiment, workload, policy,
    round(avg(turnaround_s_mean)) as turnaround_s,
    round(avg(turnaround_s_mean_priority_1)) as priority_1_s,
    round(avg(turnaround_s_mean_priority_2)) as priority_2_s,
    round(avg(turnaround_s_mean_priority_3)) as priority_3_s,
    round(avg(pdrc_s / turnaround_s_mean), 3) as pdrc_over_this,
    sum((pdrc_s < turnaround_s_mean)::int) as lists_where_pdrc_is_better
from runs join pdrc using (experiment, workload, seed)
group by experiment, workload, policy
order by experiment, workload, turnaround_s;
