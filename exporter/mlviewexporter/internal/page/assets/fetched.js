// Documents that are asked for when something is opened: details of runs and
// traces.
import { live } from './live.js';

const held = new Map();
const most = 20;

let draw = () => {};
export const onFetched = (f) => (draw = f);

// fetched returns what is known of a document: data once it has arrived, and
// missing if the collector has it no longer. A document older than the seconds is
// asked for again.
export function fetched(path, seconds) {
  let entry = held.get(path);
  if (!entry) {
    entry = { at: -Infinity, asking: false };
    held.set(path, entry);
    if (held.size > most) held.delete(held.keys().next().value);
  }
  if (!entry.asking && live.connected && performance.now() - entry.at > seconds * 1000) ask(path, entry);
  return entry;
}

async function ask(path, entry) {
  entry.asking = true;
  try {
    const answer = await fetch(path, { headers: { Accept: 'application/json' } });
    if (answer.ok) {
      entry.data = await answer.json();
      entry.missing = false;
    } else {
      entry.missing = true;
    }
  } catch {
    entry.missing = entry.data === undefined;
  }
  entry.at = performance.now();
  entry.asking = false;
  draw();
}
