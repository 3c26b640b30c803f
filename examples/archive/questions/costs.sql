-- What did each model cost, as the clients state it? In US dollars. unpriced is the
-- number of requests without a cost.
select model, count(*) as requests, sum(cost_usd) as cost_usd, count(*) - count(cost_usd) as unpriced
from requests where model is not null group by model order by model;
