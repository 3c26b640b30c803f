-- How long did users wait for the first token, by model? In seconds.
select model, count(*) as requests,
  quantile_cont(first_token_s, 0.5) as p50_s, quantile_cont(first_token_s, 0.95) as p95_s, quantile_cont(first_token_s, 0.99) as p99_s
from requests where first_token_s is not null group by model order by model;
