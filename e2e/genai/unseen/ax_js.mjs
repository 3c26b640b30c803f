// Ax, which traces itself.

// requires: @ax-llm/ax@24.0.21
// requires: @opentelemetry/exporter-trace-otlp-http@0.223.1
// requires: @opentelemetry/sdk-trace-node@2.12.0

import { ai, ax } from '@ax-llm/ax';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

const { run, step, QUESTION, PARAMETERS } = await import(`${process.env.PYTHONPATH}/unseen_calls.mjs`);
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
const tracer = provider.getTracer('ax');

const llm = (model) => ai({ name: 'openai', apiKey: 'not-needed', apiURL: `${process.env.MODEL_URL}/v1`, config: { model, embedModel: model, stream: false }, options: { tracer, retry: { maxRetries: 0 } } });
const chatPrompt = [{ role: 'user', content: QUESTION }];
await run({
  ask: (model) => llm(model).chat({ model, chatPrompt }, { stream: false, tracer }),
  stream: (model) => llm(model).chat({ model, chatPrompt }, { stream: true, tracer }),
  tool: (model) => llm(model).chat({ model, chatPrompt, functions: [{ name: 'weather', description: 'Says what the weather is.', parameters: PARAMETERS }] }, { stream: false, tracer }),
  embed: (embedModel) => llm(embedModel).embed({ embedModel, texts: [QUESTION] }, { tracer }),
});
await step('program', () => ax('question:string -> answer:string').forward(llm('tiny-1'), { question: QUESTION }, { tracer, maxRetries: 0, stream: false }));
await provider.shutdown();
process.exit(0);
