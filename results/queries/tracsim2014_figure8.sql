-- Zhang et al. 2014, Figure 8: which nodes jobs of which priority hold from when to when, one list of mixed jobs under
-- PDRC. One row a job and block of neighbouring nodes, both ends included.
with blocks as (
    select job_id, priority, start_s, finish_s, unnest(string_split(node_list, ' ')) as block
    from read_parquet('results/data/tracsim2014_series/jobs/*.parquet')
    where workload = 'mixed' and policy = 'pdrc'
)
select
    job_id, priority, start_s, finish_s,
    split_part(block, '-', 1)::int as first_node,
    coalesce(nullif(split_part(block, '-', 2), ''), block)::int as last_node
from blocks
order by start_s, first_node;
