-- Writes a Parquet file of spans from a file of the archive. main.py sets the variables
-- archive and parquet. Canonical attributes become columns; attributes and resource keep
-- all, for questions of your own. A line that is no JSON, as a full disk leaves one, is
-- skipped.
create or replace macro value_of(list, keys, name) as list[list_position(keys, name)].value;

copy (
with resources as (
  select unnest(resourceSpans) as r
  from read_json(getvariable('archive'), format = 'newline_delimited', ignore_errors = true,
    maximum_object_size = 268435456, columns = {resourceSpans: 'STRUCT(
      resource STRUCT(attributes STRUCT("key" VARCHAR, "value" STRUCT(stringValue VARCHAR, intValue BIGINT, doubleValue DOUBLE, boolValue BOOLEAN))[]),
      scopeSpans STRUCT(spans STRUCT(
        traceId VARCHAR, spanId VARCHAR, parentSpanId VARCHAR, "name" VARCHAR,
        startTimeUnixNano BIGINT, endTimeUnixNano BIGINT, status STRUCT(code INTEGER), events STRUCT("name" VARCHAR, attributes STRUCT("key" VARCHAR, "value" STRUCT(stringValue VARCHAR))[])[],
        attributes STRUCT("key" VARCHAR, "value" STRUCT(stringValue VARCHAR, intValue BIGINT, doubleValue DOUBLE, boolValue BOOLEAN))[])[])[])[]'})),
scopes as (
  select r.resource.attributes as resource, list_transform(r.resource.attributes, lambda a: a.key) as rk, unnest(r.scopeSpans) as s
  from resources),
spans as (
  select resource, rk, unnest(s.spans) as p from scopes),
keyed as (
  select resource, rk, p, p.attributes as a, list_transform(p.attributes, lambda a: a.key) as k,
    list_filter(flatten(list_transform(p.events, lambda e: e.attributes)), lambda a: a.key = 'exception.type') as e
  from spans)
select
  p.traceId as trace_id, p.spanId as span_id, p.parentSpanId as parent_id,
  p.name as name, p.startTimeUnixNano as start_ns, p.endTimeUnixNano as end_ns,
  coalesce(p.status.code, 0) = 2 as failed,
  value_of(resource, rk, 'service.name').stringValue as service,
  coalesce(value_of(a, k, 'host.name'), value_of(resource, rk, 'host.name')).stringValue as host,
  coalesce(value_of(a, k, 'ml.run.id'), value_of(resource, rk, 'ml.run.id')).stringValue as run,
  coalesce(value_of(a, k, 'ml.run.attempt'), value_of(resource, rk, 'ml.run.attempt')).intValue as attempt,
  coalesce(value_of(a, k, 'ml.rank.global'), value_of(resource, rk, 'ml.rank.global')).intValue as rank,
  coalesce(value_of(a, k, 'ml.user'), value_of(resource, rk, 'ml.user')).stringValue as "user",
  value_of(a, k, 'ml.session.id').stringValue as session,
  value_of(a, k, 'ml.operation').stringValue as operation,
  value_of(a, k, 'gen_ai.operation.name').stringValue as gen_ai_operation,
  value_of(a, k, 'ml.role').stringValue as role,
  value_of(a, k, 'ml.phase').stringValue as phase,
  value_of(a, k, 'ml.step').intValue as step,
  coalesce(value_of(a, k, 'ml.epoch_end').boolValue, false) as epoch_end,
  coalesce(value_of(a, k, 'gen_ai.response.model'), value_of(a, k, 'gen_ai.request.model')).stringValue as model,
  value_of(a, k, 'gen_ai.usage.input_tokens').intValue as input_tokens,
  value_of(a, k, 'gen_ai.usage.output_tokens').intValue as output_tokens,
  value_of(a, k, 'gen_ai.response.time_to_first_chunk').doubleValue as first_token_s,
  value_of(a, k, 'ml.usage.cost').doubleValue as cost_usd,
  coalesce(value_of(a, k, 'ml.usage.counted').boolValue, true) as usage_counted,
  coalesce(value_of(a, k, 'ml.request.counted').boolValue, true) as request_counted,
  coalesce(value_of(a, k, 'ml.error.counted').boolValue, true) as error_counted,
  coalesce(value_of(a, k, 'error.type').stringValue, e[1].value.stringValue) as error_type,
  value_of(a, k, 'repro.artifact.fingerprint').stringValue as fingerprint,
  a as attributes, resource
from keyed
) to (getvariable('parquet')) (format parquet, compression zstd);
