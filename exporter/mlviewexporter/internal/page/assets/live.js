// The State of the collector, kept up to date by its stream of events.

const lists = ['needs', 'resolved', 'runs', 'gpus', 'failures', 'calls', 'pools', 'models', 'changes', 'missing', 'collectors'];

export const live = {
  // collector is null until the first State has arrived.
  collector: null,
  // connected reports whether the stream is open.
  connected: false,
  // failed reports whether a stream has ended or could not be opened.
  failed: false,
  // received is when the last event arrived, by performance.now().
  received: 0,
  rows: Object.fromEntries(lists.map((name) => [name, new Map()])),
};

// anchor is the collector's time at the last event.
let anchor = Date.now();

// now returns the collector's time in milliseconds, so that ages are right on a
// computer whose clock is wrong.
export function now() {
  return live.collector ? anchor + (live.connected ? performance.now() - live.received : 0) : Date.now();
}

// list returns the rows of a list in the collector's order.
export const list = (name) => [...live.rows[name].values()];

// get returns a row by its key.
export const get = (name, key) => live.rows[name].get(key);

// hidden returns the number of rows of a list beyond the limit of the page.
export const hidden = (name) => (live.collector.hidden || {})[name] || 0;

function take(time, collector) {
  live.collector = collector;
  live.received = performance.now();
  live.connected = true;
  anchor = Date.parse(time);
}

function whole(state) {
  for (const name of lists) live.rows[name] = new Map((state[name] || []).map((row) => [row.key, row]));
  take(state.time, state.collector);
}

// merged returns the row with fields that changed; null are those that have gone.
function merged(row, fields) {
  const next = { ...row, ...fields };
  for (const name in fields) if (fields[name] === null) delete next[name];
  return next;
}

function changed(update) {
  for (const [name, { set, change, del }] of Object.entries(update.rows || {})) {
    const rows = live.rows[name];
    if (!rows) continue;
    for (const key of del || []) rows.delete(key);
    for (const row of set || []) rows.set(row.key, row);
    for (const fields of change || []) rows.set(fields.key, merged(rows.get(fields.key), fields));
  }
  for (const [name, keys] of Object.entries(update.order || {})) {
    const rows = live.rows[name];
    if (rows) live.rows[name] = new Map(keys.filter((k) => rows.has(k)).map((k) => [k, rows.get(k)]));
  }
  take(update.time, update.collector);
}

// connect follows the stream and calls draw after each event. It connects again
// by itself, also when the collector refused or went silent.
export function connect(draw) {
  let source;
  const open = () => {
    source = new EventSource('/api/v1/events');
    let complete = false;
    source.addEventListener('state', (e) => {
      whole(JSON.parse(e.data));
      complete = true;
      draw();
    });
    source.addEventListener('rows', (e) => {
      if (!complete) return;
      changed(JSON.parse(e.data));
      draw();
    });
    source.addEventListener('failed', () => again(5000));
    source.onerror = () => {
      live.connected = false;
      live.failed = true;
      complete = false;
      draw();
      if (source.readyState === EventSource.CLOSED) again(3000);
    };
  };
  let waiting = null;
  const again = (ms) => {
    source.close();
    live.connected = false;
    if (waiting === null) waiting = setTimeout(() => ((waiting = null), open()), ms);
  };
  setInterval(() => {
    const interval = ((live.collector && live.collector.interval) || 2) * 1000;
    if (waiting === null && live.collector && performance.now() - live.received > 5 * interval + 10000) again(0);
  }, 1000);
  open();
}
