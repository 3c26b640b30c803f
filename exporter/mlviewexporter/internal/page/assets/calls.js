// The part of the page with calls and pools of workers.
import { h, sub, dim, note } from './dom.js';
import { list, get } from './live.js';
import { isOpen } from './folds.js';
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
  { id: 'model', leaves: 2, head: 'Model · tool', has: (c) => c.model || c.tool, cell: (c) => [c.tool, c.model ? (c.tool ? sub(c.model) : c.model) : null] },
  { id: 'agent', leaves: 1, head: 'Agent · session', has: (c) => c.agent || c.session, cell: (c) => [c.agent, c.session ? h('span', { class: 'sub id', title: c.session }, c.session) : null] },
  { id: 'service', head: 'Service', has: has('service'), cell: (c) => [c.service, c.host ? sub(c.host) : null] },
  { id: 'duration', head: 'Duration', def: 'duration', num: true, cell: (c) => seconds(c.duration) },
  { id: 'queue', head: 'Waited', def: 'queue', num: true, has: has('queue'), cell: (c) => seconds(c.queue) },
  { id: 'serialize', head: 'Encoding', def: 'serialize', num: true, has: has('serialize'), cell: (c) => seconds(c.serialize) },
  limitedBy,
  { id: 'result', head: 'Result', cell: result },
  { id: 'trace', head: 'Trace', has: has('trace_url'), cell: (c) => jaeger(c.trace_url) },
];

export function callTable(id, rows) {
  return table(id, 'Calls', callColumns, [{ rows }], { expand: (c) => (c.trace_id ? traceOf(c.trace_id, c.trace_url) : note('no trace known')), open: isOpen(id) });
}

// callsOf describes the last calls of which something is true, for an opened row.
export function callsOf(id, is) {
  const calls = list('calls').filter(is);
  return calls.length ? callTable(id, calls.slice(0, 10).map((row) => ({ row }))) : note('None of the last calls belongs to it.');
}

// choice describes a filter of calls by a field.
function choice(name, label, calls, of) {
  const values = [...new Set(calls.map(of).filter(Boolean))].sort().slice(0, 100);
  if (view[name] && !values.includes(view[name])) values.push(view[name]);
  return values.length ? h('label', { key: name }, h('span', {}, label + ' '), h('select', { 'data-act-change': name, value: view[name], 'data-testid': 'calls-' + name },
    h('option', { value: '' }, 'all'), name === 'error' ? h('option', { key: 'any', value: 'any' }, 'any error') : null, values.filter((v) => v !== 'any').map((v) => h('option', { key: 'v:' + v, value: v }, v)))) : null;
}

function matches(c) {
  const run = get('runs', c.run) || {};
  return whose(run) && (!view.model || c.model === view.model) && (!view.tool || c.tool === view.tool) && (!view.error || (view.error === 'any' ? c.error : c.error === view.error)) && (!view.kind || (view.kind === 'failing' && c.error) || (view.kind === 'slow' && c.slow)) &&
    found(c.function, c.library, c.service, c.host, c.error, c.message, c.model, c.tool, c.agent, c.session, run.owner);
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
  const choices = [choice('model', 'Model', calls, (c) => c.model), choice('tool', 'Tool', calls, (c) => c.tool), choice('error', 'Error', calls, (c) => c.error)];
  if (pooled.rows.length + rows.length === 0) return part('calls', 'Calls and workers', '', choices, note('No call matches the filters.'));
  return part('calls', 'Calls and workers', '', choices,
    pooled.rows.length ? [h('h3', { key: 'hp' }, 'Pools of workers'), pooled.controls, table('pools', 'Pools of workers', poolColumns, [{ rows: pooled.rows }], { expand: (p) => callsOf('pool-calls', (c) => c.service === p.service), open: isOpen('pools') })] : null,
    errors.rows.length ? [h('h3', { key: 'he' }, 'Recent errors (' + failed.length + ') ', errors.controls), callTable('errors', plain(errors.rows)), errors.footer] : null,
    recent.rows.length ? [h('h3', { key: 'hc' }, 'Recent calls (' + rows.length + ') ', recent.controls), callTable('calls', plain(recent.rows)), recent.footer] : null);
}

// A call that has left the list is not over: it has happened.
const plain = (rows) => rows.map(({ row }) => ({ row }));
