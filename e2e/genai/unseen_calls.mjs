// What the programs in unseen/ for Node.js ask, as unseen_calls.py has it.

// Some instrumentations read a stream beside its program, and do not catch its failure.
process.on('unhandledRejection', (error) => console.error(`unhandled: ${error}`));

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

export const QUESTION = 'why is the sky blue and not green at noon';
export const MESSAGES = [{ role: 'user', content: QUESTION }];
export const PARAMETERS = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
export const TOOL = { type: 'function', function: { name: 'weather', description: 'Says what the weather is.', parameters: PARAMETERS } };

export async function step(name, ask) {
  try {
    // Some clients never say that a stream was cut.
    await Promise.race([ask(), sleep(8000).then(() => { throw new Error('it never ends'); })]);
    console.error(`${name}: ok`);
  } catch (error) {
    console.error(`${name}: ${error.name}: ${String(error.message).slice(0, 120)}`);
  }
  await sleep(100);
}

async function drain(stream, most) {
  let number = 0;
  for await (const _ of await stream) if (++number === most) break;
}

// Makes the requests that the SDK can make. Each function takes the name of a model.
export async function run({ ask, stream, tool, embed, retrying }) {
  await step('plain', () => ask('tiny-1'));
  await step('plain again', () => ask('tiny-1'));
  await step('cached', () => ask('tiny-cached'));
  if (tool) await step('tool', () => tool('tiny-1'));
  if (embed) await step('embed', () => embed('tiny-embed'));
  await step('500', () => ask('tiny-broken'));
  await step('429', () => ask('tiny-limited'));
  if (retrying) await step('429 and again', () => retrying('tiny-busy'));
  if (!stream) return;
  await step('stream', () => drain(stream('tiny-1')));
  await step('stream again', () => drain(stream('tiny-1')));
  await step('stream cached', () => drain(stream('tiny-cached')));
  await step('stream 500', () => drain(stream('tiny-broken')));
  await step('stream cut', () => drain(stream('tiny-cut')));
  await step('stream left', () => drain(stream('tiny-1'), 3));
}

export const openai = (OpenAI) => {
  const client = (retries) => new OpenAI({ baseURL: `${process.env.MODEL_URL}/v1`, apiKey: 'not-needed', maxRetries: retries });
  const create = (model, more, retries = 0) => client(retries).chat.completions.create({ model, messages: MESSAGES, ...more });
  return run({
    ask: create,
    stream: (model) => create(model, { stream: true, stream_options: { include_usage: true } }),
    tool: (model) => create(model, { tools: [TOOL] }),
    embed: (model) => client(0).embeddings.create({ model, input: QUESTION }),
    retrying: (model) => create(model, {}, 3),
  });
};

export const anthropic = (Anthropic) => {
  const create = (model, more, retries = 0) => new Anthropic({ baseURL: process.env.MODEL_URL, apiKey: 'not-needed', maxRetries: retries })
    .messages.create({ model, max_tokens: 100, messages: MESSAGES, ...more });
  return run({
    ask: create,
    stream: (model) => create(model, { stream: true }),
    tool: (model) => create(model, { tools: [{ name: 'weather', description: 'Says what the weather is.', input_schema: PARAMETERS }] }),
    retrying: (model) => create(model, {}, 3),
  });
};
