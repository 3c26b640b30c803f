// Genkit for JavaScript, which traces itself.

// requires: genkit@1.42.0
// requires: @genkit-ai/compat-oai@1.42.0
// requires: @opentelemetry/exporter-trace-otlp-http@0.52.1
// requires: @opentelemetry/sdk-trace-base@1.25.1

import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { genkit, z } from 'genkit';
import { enableTelemetry } from 'genkit/tracing';
import { openAICompatible } from '@genkit-ai/compat-oai';

const { run, step, QUESTION } = await import(`${process.env.PYTHONPATH}/unseen_calls.mjs`);
const processor = new BatchSpanProcessor(new OTLPTraceExporter());
await enableTelemetry({ spanProcessors: [processor] });
const ai = genkit({ plugins: [openAICompatible({ name: 'local', apiKey: 'not-needed', baseURL: `${process.env.MODEL_URL}/v1`, maxRetries: 0 })] });
const weather = ai.defineTool({ name: 'weather', description: 'Says what the weather is.', inputSchema: z.object({ city: z.string() }), outputSchema: z.string() }, async ({ city }) => `it rains in ${city}`);
const ask = (model, more) => ai.generate({ model: `local/${model}`, prompt: QUESTION, ...more });
await run({
  ask,
  stream: (model) => ai.generateStream({ model: `local/${model}`, prompt: QUESTION }).stream,
  tool: (model) => ask(model, { tools: [weather] }),
});
const flow = ai.defineFlow('flow', async () => (await ask('tiny-1')).text);
await step('flow', () => flow());
await processor.forceFlush();
process.exit(0);
