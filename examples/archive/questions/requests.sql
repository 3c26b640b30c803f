-- How many requests did each model get, and which share failed?
select model, count(*) as requests, count(*) filter (failed) as failures, avg(failed::int) as failed_share
from requests where model is not null group by model order by model;
