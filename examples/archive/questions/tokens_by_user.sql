-- How many tokens did each user's requests use? A user is the hash in ml.user.
select "user", count(*) as requests,
  coalesce(sum(input_tokens), 0)::bigint as input_tokens, coalesce(sum(output_tokens), 0)::bigint as output_tokens
from requests where "user" is not null group by "user" order by "user";
