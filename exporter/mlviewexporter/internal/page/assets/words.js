// The words of the page for the values of telemetry. A value without a word is
// shown as it was sent.

export const kinds = {
  looks_hung: 'looks hung', gpu_failed: 'GPU failed', restart_loop: 'restart loop', failing: 'failing', slow: 'slow', held_idle: 'held idle',
};

export const states = { running: 'running', stalled: 'looks hung', silent: 'silent', ended: 'ended', unknown: 'no step yet' };

export const activities = {
  working: 'working', looks_hung: 'looks hung', slow: 'slow', held_idle: 'held idle', failed: 'failed', free: 'free',
};

export const bounds = {
  input: 'data', gpu: 'GPU', checkpoint: 'checkpoint', launch: 'launches or other ranks', unknown: 'not known',
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
