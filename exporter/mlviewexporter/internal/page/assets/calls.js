// The part of the page with calls and pools of workers.
import { h, sub, dim, note } from './dom.js';
import { list, get } from './live.js';
import { view, found, whose } from './address.js';
import { callBounds, classOf, word } from './words.js';
import { count, percent, seconds, time } from './format.js';
import { table, rowsOf, part, simulated, has } from './table.js';
import { jaeger, traceOf } from './waterfall.js';

const num = (id, head, def) => ({ id, head, def: def || id, num: true, has: has(id), cell: (p) => count(p[id]) });

const poolColumns = [
  { id: 'pool', head: 'Pool', header: true, cell: (p) => p.pool || 'unnamed', after: (p) => [simulated(p), sub([p.service, p.instance].filter(Boolean).join(' · '))] },
  num('size', 'Workers', 'pool'), num('busy', 'Busy', 'pool'), num('idle', 'Idle', 'pool'), num('queue', 'Queue', 'pool'),
  num('crashes', 'Crashes', 'crashes'), num('breakers', 'Breaker openings', 'breakers'), num('alerts', 'Health alerts', 'alerts'),
];

const result = (c) => c.error ? [h('strong', { class: 'error' }, classOf(c.error)), c.message ? h('span', { class: 'message' }, c.message) : null] : 'ok';

// limitedBy is the column with what most of the time of calls or requests was spent
// on. The rest is on hover.
export const limitedBy = {
  id: 'bound', head: 'Limited by', def: 'call_bound', has: has('bound'),
  cell: (row) => {
    if (row.bound.unknown > 0.99) return dim('unattributed');
    const causes = Object.entries(row.bound).sort((a, b) => b[1] - a[1]).map(([cause, share]) => word(callBounds, cause) + ' ' + percent(share));
    return h('span', { title: causes.join(', ') }, causes[0]);
  },
};

const callColumns = [
  { id: 'function', head: 'Call', header: true, cell: (c) => (c.library ? c.library + '.' : '') + c.function, after: (c) => [c.slow ? h('span', { class: 'tag slow', title: 'much longer than usual' }, 'slow') : null, simulated(c)] },
  { id: 'time', head: 'Time', cell: (c) => time(c.time, true) },
  { id: 'service', head: 'Service', has: has('service'), cell: (c) => [c.service, c.host ? sub(c.host) : null] },
  { id: 'duration', head: 'Duration', def: 'duration', num: true, cell: (c) => seconds(c.duration) },
  { id: 'queue', head: 'Waited', def: 'queue', num: true, has: has('queue'), cell: (c) => seconds(c.queue) },
  { id: 'serialize', head: 'Encoding', def: 'serialize', num: true, has: has('serialize'), cell: (c) => seconds(c.serialize) },
  limitedBy,
  { id: 'result', head: 'Result', cell: result },
  { id: 'trace', head: 'Trace', has: has('trace_url'), cell: (c) => jaeger(c.trace_url) },
];

let openKey = '';
export const toggleCall = (key) => (openKey = openKey === key ? '' : key);

export function callTable(id, rows) {
  return table(id, 'Calls', callColumns, [{ rows }], rows.some(({ row }) => row.trace_id)
    ? { expand: (c) => (c.trace_id ? traceOf(c.trace_id, c.trace_url) : note('no trace known')), open: (c) => c.key === openKey } : {});
}

function matches(c) {
  const run = get('runs', c.run) || {};
  return whose(run) && (!view.kind || (view.kind === 'failing' && c.error) || (view.kind === 'slow' && c.slow)) &&
    found(c.function, c.library, c.service, c.host, c.error, c.message, run.owner);
}

export function callsPart() {
  const calls = list('calls');
  const pools = list('pools');
  if (calls.length + pools.length === 0) return null;
  const rows = calls.filter(matches);
  const failed = rows.filter((c) => c.error);
  const first = innerWidth < 640 ? 4 : 10;
  const recent = rowsOf('calls', rows, { newest: true, first });
  const errors = rowsOf('errors', failed, { newest: true, renew: 'calls', first });
  const pooled = rowsOf('pools', pools.filter((p) => found(p.pool, p.service, p.instance)));
  if (pooled.rows.length + rows.length === 0) return part('calls', 'Calls and workers', '', null, note('No call matches the filters.'));
  return part('calls', 'Calls and workers', '', null,
    pooled.rows.length ? [h('h3', { key: 'hp' }, 'Pools of workers'), pooled.controls, table('pools', 'Pools of workers', poolColumns, [{ rows: pooled.rows }])] : null,
    errors.rows.length ? [h('h3', { key: 'he' }, 'Recent errors (' + failed.length + ') ', errors.controls), callTable('errors', plain(errors.rows)), errors.footer] : null,
    recent.rows.length ? [h('h3', { key: 'hc' }, 'Recent calls (' + rows.length + ') ', recent.controls), callTable('calls', plain(recent.rows)), recent.footer] : null);
}

// A call that has left the list is not over: it has happened.
const plain = (rows) => rows.map(({ row }) => ({ row }));
