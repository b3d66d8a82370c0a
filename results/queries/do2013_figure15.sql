-- Do et al. 2013, Figure 15: distribution of the response times at equal arrival rates, slowed to 70% against full speed.
pivot (
    select arrival_rate_per_s, server_priority, x as response_s, platform, round(value, 5) as share
    from read_parquet('results/data/do2013_dvfs_rate/series/*.parquet')
    join (
        select task_id, arrival_rate_per_s, server_priority
        from read_parquet('results/data/do2013_dvfs_rate/tasks/*.parquet')
    ) using (task_id)
    where series = 'response_time_cdf' and x <= 12
)
on platform in ('full', 'slowed') using first(share)
order by arrival_rate_per_s, server_priority, response_s;
