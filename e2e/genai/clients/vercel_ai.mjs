// Vercel's AI SDK with its own telemetry: a model that calls a tool, one that streams, and one that fails.

// requires: ai@7.0.173
// requires: @ai-sdk/openai-compatible@2.0.91
// requires: @ai-sdk/otel@1.0.173
// requires: @opentelemetry/exporter-trace-otlp-http@0.223.1
// requires: @opentelemetry/sdk-trace-node@2.12.0

import { OpenTelemetry } from '@ai-sdk/otel';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';
import { generateText, jsonSchema, registerTelemetry, stepCountIs, streamText, tool } from 'ai';

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
registerTelemetry(new OpenTelemetry());

const models = createOpenAICompatible({ name: 'local', baseURL: `${process.env.MODEL_URL}/v1`, includeUsage: true });
const weather = tool({
  description: 'Says what the weather is.',
  inputSchema: jsonSchema({ type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }),
  execute: async ({ city }) => `it rains in ${city}`,
});
const request = (model) => ({
  model: models(model),
  prompt: 'why is the sky blue and not green at noon',
  tools: { weather },
  maxOutputTokens: 12,
  maxRetries: 0,
  stopWhen: stepCountIs(2),
});

await generateText(request('tiny-1'));
for await (const _ of streamText(request('tiny-1')).textStream);
const failed = await generateText(request('tiny-broken')).then(() => false, () => true);
await provider.forceFlush();
process.exit(failed ? 0 : 'the request to the broken model did not fail');
