-- Which ranks do the others wait for? The backward pass is left out, because in it ranks
-- wait for each other. own_s is the mean time of a step, ratio its multiple of the run's
-- median.
with own as (
  select run, rank, sum(end_ns - start_ns) / 1e9 / count(*) filter (phase = 'optimizer') as own_s
  from phases where phase in ('data_load', 'forward', 'optimizer') and rank is not null
  group by run, rank)
select *, own_s / median(own_s) over (partition by run) as ratio
from own order by ratio desc, run, rank limit 20;
