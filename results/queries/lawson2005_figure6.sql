-- Lawson & Smirni 2005, Figure 6: number of active processors under online simulation (OLS). Each holds from its week (with
-- a fraction, from the first submit) until the next.
select workload, round((x - min(x) over (partition by workload)) / 604800, 4) as from_week, value::int as active_procs
from read_parquet('results/data/lawson2005/series/*.parquet')
where series = 'active_procs' and policy = 'ols'
order by workload, from_week;
