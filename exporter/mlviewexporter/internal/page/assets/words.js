// The words of the page for the values of telemetry. A value without a word is
// shown as it was sent.

const plain = (names) => Object.fromEntries(names.split(' ').map((k) => [k, k.replaceAll('_', ' ')]));

// kinds are the problems, the most urgent first.
export const kinds = plain('looks_hung gpu_failed host_silent run_silent rank_missing failing slow_requests slow slow_host lemon_host lemon_version nonfinite run_failed loss_frozen restart_loop checkpoint_overdue retry_storm throttled held_idle tool_errors truncated answers_changed tail_latency model_substituted cache_collapsed costly');
Object.assign(kinds, { gpu_failed: 'GPU failed', nonfinite: 'loss not finite', truncated: 'answers cut by length', model_substituted: 'another model answers', cache_collapsed: 'cached tokens collapsed' });

// severities say when somebody should act.
export const severities = { page: 'now', ticket: 'today' };

export const states = { stalled: 'looks hung', unknown: 'no step yet' };

export const activities = plain('working looks_hung slow held_idle failed free no_data');

export const bounds = {
  input: 'data', gpu: 'GPU', checkpoint: 'checkpoint', launch: 'launches or other ranks', unknown: 'unattributed',
};

export const callBounds = {
  queue: 'queue', serialize: 'encoding', input: 'data', model_server: 'model server', network: 'network', gpu: 'GPU', cpu: 'CPU', unknown: 'unattributed',
};

export const curves = {
  loss: 'Loss', step_time: 'Step time', token_rate: 'Tokens', goodput: 'Goodput', gpu_utilization: 'GPU use', gpu_memory: 'GPU memory', power: 'Power',
  validation_loss: 'Validation loss', learning_rate: 'Learning rate', sample_rate: 'Samples',
};

// fields are the numbers of a run whose absence is explained.
export const fields = { token_rate: 'tokens/s', loss: 'loss', last_checkpoint: 'checkpoint' };

// classOf writes the class of an error.
export const classOf = (name) => (name === '_OTHER' ? 'error without a type' : name);

export const word = (table, value) => (Object.hasOwn(table, value) ? table[value] : String(value ?? ''));
