-- How long was each run without a step? since_last_s is the time from its last step to
-- the newest span of the archive: a run that hangs, if nothing ended it.
with gaps as (
  select run, end_ns, end_ns - lag(end_ns) over (partition by run order by end_ns) as gap_ns from steps)
select run, max(gap_ns) / 1e9 as longest_gap_s, make_timestamp(arg_max(end_ns - gap_ns, gap_ns) // 1000) as gap_began,
  make_timestamp(max(end_ns) // 1000) as last_step,
  ((select max(end_ns) from spans) - max(end_ns)) / 1e9 as since_last_s
from gaps group by run order by run;
