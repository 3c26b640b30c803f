// The Anthropic SDK, instrumented by OpenLLMetry.

// requires: @anthropic-ai/sdk@0.60.0
// requires: @opentelemetry/instrumentation@0.223.0
// requires: @traceloop/instrumentation-anthropic@0.27.0
// requires: @opentelemetry/exporter-trace-otlp-http@0.223.1
// requires: @opentelemetry/sdk-trace-node@2.12.0

const { OTLPTraceExporter } = require('@opentelemetry/exporter-trace-otlp-http');
const { registerInstrumentations } = require('@opentelemetry/instrumentation');
const { BatchSpanProcessor, NodeTracerProvider } = require('@opentelemetry/sdk-trace-node');
const { AnthropicInstrumentation } = require('@traceloop/instrumentation-anthropic');

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
const instrumentation = new AnthropicInstrumentation();
registerInstrumentations({ tracerProvider: provider, instrumentations: [instrumentation] });
const Anthropic = require('@anthropic-ai/sdk');

import(`${process.env.PYTHONPATH}/unseen_calls.mjs`).then((calls) => calls.anthropic(Anthropic)).then(() => provider.shutdown());
