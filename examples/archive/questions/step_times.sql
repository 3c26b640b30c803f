-- How long do the steps of each run and rank take? In seconds.
select run, rank, count(*) as steps,
  quantile_cont(seconds, 0.5) as p50_s, quantile_cont(seconds, 0.95) as p95_s, quantile_cont(seconds, 0.99) as p99_s
from steps group by run, rank order by run, rank;
