-- What failed, how often, and when? A failure is counted where it happened and not above
-- it. fingerprint names the folder of the reproduction, if there is one.
select service, fingerprint, error_type, count(*) as failures,
  make_timestamp(min(start_ns) // 1000) as first, make_timestamp(max(end_ns) // 1000) as last, min(trace_id) as a_trace
from spans s
where failed and error_counted and not epoch_end and not exists (
  select 1 from spans c where c.failed and c.trace_id = s.trace_id and c.parent_id = s.span_id)
group by service, fingerprint, error_type order by failures desc, service, fingerprint, error_type;
