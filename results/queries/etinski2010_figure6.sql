-- Etinski et al. 2010, Figure 6: waits (s) of the jobs of SDSCBlue at full speed and with BSLDthreshold 2,
-- WQthreshold 16 (experiment etinski2010_jobs).
with runs as (
    select task_id, gear_rule
    from read_parquet('results/data/etinski2010_jobs/tasks/*.parquet')
    where workload = 'SDSCBlue' and size_factor = 1
      and (gear_rule = 'top' or (bsld_threshold = 2 and wq_threshold = 16))
),
jobs as (
    select job_id, submit_s, wait_s, gear_rule
    from read_parquet('results/data/etinski2010_jobs/jobs/*.parquet') join runs using (task_id)
)
select job_id, submit_s, full_speed.wait_s as wait_full_speed_s, saving.wait_s as wait_saving_s
from (select * from jobs where gear_rule = 'top') as full_speed
join (select job_id, wait_s from jobs where gear_rule = 'bsld') as saving using (job_id)
order by job_id;
