// Vercel's AI SDK, version 6, with its own telemetry.

// requires: ai@6.0.326
// requires: @ai-sdk/openai-compatible@2.0.92
// requires: @opentelemetry/exporter-trace-otlp-http@0.223.1
// requires: @opentelemetry/sdk-trace-node@2.12.0

import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { ToolLoopAgent, embed, generateText, jsonSchema, stepCountIs, streamText, tool } from 'ai';

const { run, step, QUESTION, PARAMETERS } = await import(`${process.env.PYTHONPATH}/unseen_calls.mjs`);
const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();

const models = createOpenAICompatible({ name: 'local', baseURL: `${process.env.MODEL_URL}/v1`, includeUsage: true });
const telemetry = { experimental_telemetry: { isEnabled: true } };
const weather = tool({ description: 'Says what the weather is.', inputSchema: jsonSchema(PARAMETERS), execute: async ({ city }) => `it rains in ${city}` });
const ask = (model, more) => generateText({ model: models(model), prompt: QUESTION, maxRetries: 0, ...telemetry, ...more });

await run({
  ask,
  stream: (model) => streamText({ model: models(model), prompt: QUESTION, maxRetries: 0, ...telemetry, onError() {} }).textStream,
  tool: (model) => ask(model, { tools: { weather }, stopWhen: stepCountIs(2) }),
  embed: (model) => embed({ model: models.textEmbeddingModel(model), value: QUESTION, maxRetries: 0, ...telemetry }),
  retrying: (model) => ask(model, { maxRetries: 3 }),
});
const expert = tool({ description: 'Knows all.', inputSchema: jsonSchema(PARAMETERS), execute: async () => (await ask('tiny-1')).text });
await step('agent within an agent', () => new ToolLoopAgent({ model: models('tiny-1'), tools: { expert }, maxRetries: 0, ...telemetry }).generate({ prompt: QUESTION }));
await provider.forceFlush();
process.exit(0);
