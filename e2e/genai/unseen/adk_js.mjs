// Google's Agent Development Kit for JavaScript, which traces itself.

// requires: @google/adk@2.0.0
// requires: @opentelemetry/exporter-trace-otlp-http@0.205.0
// requires: @opentelemetry/sdk-trace-node@2.1.0
// requires: zod@4.6.7

import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { BatchSpanProcessor, NodeTracerProvider } from '@opentelemetry/sdk-trace-node';

const provider = new NodeTracerProvider({ spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter())] });
provider.register();
process.env.GOOGLE_GEMINI_BASE_URL = process.env.MODEL_URL;
process.env.GEMINI_API_KEY = 'not-needed';
const { AgentTool, FunctionTool, Gemini, InMemoryRunner, LlmAgent } = await import('@google/adk');
const { z } = await import('zod');
const { run, step, QUESTION } = await import(`${process.env.PYTHONPATH}/unseen_calls.mjs`);

const weather = new FunctionTool({ name: 'weather', description: 'Says what the weather is.', parameters: z.object({ city: z.string() }), execute: ({ city }) => ({ text: `it rains in ${city}` }) });
const agent = (model, tools = [], name = 'helper') => new LlmAgent({ name, model: new Gemini({ model, apiKey: 'not-needed' }), instruction: 'Help.', description: 'It helps.', tools });

async function ask(model, tools, streamingMode) {
  const runner = new InMemoryRunner({ agent: agent(model, tools), appName: 'app' });
  const session = await runner.sessionService.createSession({ appName: 'app', userId: 'user-1' });
  for await (const event of runner.runAsync({ userId: 'user-1', sessionId: session.id, newMessage: { role: 'user', parts: [{ text: QUESTION }] }, runConfig: streamingMode ? { streamingMode } : undefined }))
    if (event.errorCode) throw new Error(event.errorCode + event.errorMessage);
}

await run({ ask: (model) => ask(model), tool: (model) => ask(model, [weather]), stream: async (model) => { await ask(model, [], 'sse'); return []; } });
await step('agent within an agent', () => ask('tiny-1', [new AgentTool({ agent: agent('tiny-1', [], 'expert') })]));
await provider.forceFlush();
process.exit(0);
