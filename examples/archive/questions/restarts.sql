-- What did restarts cost? lost_rank_hours is the time from the last step of an attempt to
-- the first of the next, of all ranks together: GPU-hours, if each rank has a GPU.
-- repeated_steps are steps whose number an earlier attempt had reached, of one rank.
with attempts as (
  select run, rank, attempt, min(end_ns) as first_ns, max(end_ns) as last_ns, max(step) as last_step
  from steps where attempt is not null group by run, rank, attempt),
before as (
  select *, lag(last_ns) over w as ended_ns, max(last_step) over (w rows between unbounded preceding and 1 preceding) as reached
  from attempts window w as (partition by run, rank order by attempt)),
lost as (
  select run, count(distinct attempt) as restarts, sum(first_ns - ended_ns) / 3.6e12 as lost_rank_hours
  from before where ended_ns is not null group by run),
repeated as (
  select run, max(n) as repeated_steps from (
    select s.run, s.rank, count(*) filter (s.step <= b.reached) as n
    from steps s join before b using (run, rank, attempt) group by s.run, s.rank)
  group by run)
select run, restarts, lost_rank_hours, repeated_steps from lost join repeated using (run) order by run;
