// What the page shows before a program has sent anything: how to send it something, and
// what has arrived so far.
import { h, sub } from './dom.js';
import { live, list } from './live.js';
import { age, count } from './format.js';
import { part, copyable } from './table.js';

// starting reports whether no program has sent anything yet.
export const starting = () => ['runs', 'models', 'calls', 'failures', 'needs', 'resolved'].every((name) => list(name).length === 0);

const python = (endpoint) => `# pip install opentelemetry-sdk opentelemetry-exporter-otlp-proto-http
import time
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

run = {"service.name": "trainer", "ml.run.id": f"run-{int(time.time())}"}
provider = TracerProvider(resource=Resource.create(run))
exporter = OTLPSpanExporter("${endpoint}/v1/traces")
provider.add_span_processor(BatchSpanProcessor(exporter))
tracer = provider.get_tracer("trainer")
with tracer.start_as_current_span("training", attributes={"ml.phase": "train"}):
    for step in range(100):  # your loop
        with tracer.start_as_current_span("step") as span:
            time.sleep(0.5)  # your step
            span.set_attribute("ml.phase", "optimizer")
            span.set_attribute("ml.loss", 2 / (1 + step))
provider.shutdown()
`;

const environment = (endpoint) => `export OTEL_SERVICE_NAME=trainer
export OTEL_RESOURCE_ATTRIBUTES=ml.run.id=run-1
export OTEL_EXPORTER_OTLP_ENDPOINT=${endpoint}
export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf
`;

const logs = 'TRAINING_LOGS=[/data/runs/*/*.log] otelcol-ml --config agent.yaml --config logs-files.yaml\n';

export function start() {
  const c = live.collector;
  const endpoint = 'http://' + location.hostname + ':4318';
  const way = (id, title, says, text) => h('li', { key: id, 'data-testid': 'start-' + id }, h('h3', {}, title), h('p', { class: 'dim' }, says), copyable(text, title));
  const hosts = list('gpus').length ? new Set(list('gpus').map((g) => g.host)).size : 0;
  const arrived = [
    ['Spans of programs', 0, 'none yet'],
    ['GPU readings', list('gpus').length, 'none yet', count(list('gpus').length) + ' GPUs on ' + hosts + (hosts === 1 ? ' host' : ' hosts')],
    ['Hosts that send', c.hosts, 'none yet', c.hosts_reporting + ' of ' + c.hosts],
  ];
  return part('start', c.data_time ? 'No program has sent anything yet' : 'Nothing has arrived yet', '', null,
    h('p', { key: 'says', 'data-testid': c.data_time ? 'start-says' : 'banner-empty' }, 'The collector has run for ' + age(c.started) + '. It takes OTLP at ', h('code', {}, location.hostname + ':4317'), ' (gRPC) and ', h('code', {}, endpoint), ' (HTTP), unless its configuration says otherwise. What is sent appears here within seconds.'),
    h('ol', { key: 'ways', class: 'ways' },
      way('python', 'A loop in Python', 'Runs as it is, for 50 seconds. The end of a span with ml.phase = optimizer is a step.', python(endpoint)),
      h('li', { key: 'others', class: 'stack' }, h('ol', {},
        way('environment', 'A program that has OpenTelemetry', 'Frameworks, servers and agents read these variables of their environment.', environment(endpoint)),
        way('logs', 'A log file', 'The collector reads the steps that a trainer prints: start it with the two configurations.', logs),
        h('li', { key: 'arrived', 'data-testid': 'start-arrived' }, h('h3', {}, 'What has arrived so far'), h('dl', { class: 'facts' }, arrived.map(([name, n, none, some]) =>
          h('div', { key: name, class: 'fact' }, h('dt', {}, name), h('dd', { class: n ? 'ok' : 'dim' }, n ? '✓ ' + some : none)))),
        list('missing').length ? sub('Data gaps, below, says what the collector itself lacks.') : null)))));
}
