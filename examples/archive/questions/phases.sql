-- What do the runs spend their time on, by minute? share is that of the time in phases,
-- of all ranks together.
select run, date_trunc('minute', make_timestamp(start_ns // 1000)) as minute, phase,
  sum(end_ns - start_ns) / 1e9 as seconds,
  seconds / sum(seconds) over (partition by run, minute) as share
from phases where phase not in ('train', 'epoch')
group by run, minute, phase order by run, minute, phase;
