-- What several questions need. main.py makes the view spans of the Parquet files first.

-- The spans of a run's phases, without those within a span of the same phase.
create view phases as
select s.* from spans s
left join spans p on p.trace_id = s.trace_id and p.span_id = s.parent_id
where s.run is not null and s.phase is not null and s.phase is distinct from p.phase;

-- The steps of each rank, by their ends. A step ends with the optimizer or, if the run
-- has none, with a batch that is a trace of its own. seconds is the time since the
-- previous step of the same attempt; the first step of an attempt has none.
create view steps as
with ends as (
  select run, rank, attempt, step, end_ns from phases where phase = 'optimizer' and not failed
  union all
  select run, rank, attempt, step, end_ns from phases
  where phase = 'batch' and coalesce(parent_id, '') = '' and not failed
    and run not in (select run from phases where phase = 'optimizer'))
select *, (end_ns - lag(end_ns) over (partition by run, rank, attempt order by end_ns)) / 1e9 as seconds
from ends;

-- Requests to models, each once.
create view requests as
select * from spans
where request_counted and usage_counted
  and (input_tokens is not null or output_tokens is not null or phase = 'sample'
    or gen_ai_operation in ('chat', 'text_completion', 'generate_content', 'embeddings'));
