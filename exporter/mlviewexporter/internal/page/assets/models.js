// The part of the page with models and agents.
import { h, sub, dim, note } from './dom.js';
import { list, hidden } from './live.js';
import { view, found, filtered } from './address.js';
import { ago, count, number, percent, rate, seconds } from './format.js';
import { table, rowsOf, part, simulated, has } from './table.js';
import { limitedBy, callsOf } from './calls.js';
import { isOpen as isOpened } from './folds.js';

const pair = (write) => (q) => (q ? [write(q.p50), sub('p95 ' + write(q.p95))] : null);
const inSeconds = pair(seconds);

const errors = (m) => h('ul', {}, Object.entries(m.errors).sort((a, b) => b[1] - a[1]).slice(0, 5).map(([type, n]) => h('li', { key: type }, type + ' ' + count(n))));

const columns = [
  { id: 'model', head: 'Service · model', header: true, cell: (m) => m.service || m.model || 'unnamed', after: (m) => [simulated(m), h('span', { class: 'sub parts' }, m.model ? h('span', { key: 'm' }, m.model) : null, m.role ? h('span', { key: 'r' }, m.role) : null, m.side ? h('span', { key: 's' }, m.side + ' side') : null)] },
  { id: 'request_rate', head: 'Requests', def: 'request_rate', num: true, has: has('request_rate'), cell: (m) => [number(m.request_rate) + ' /s', m.requests === undefined ? null : sub(count(m.requests) + ' in all')] },
  { id: 'error_ratio', head: 'Error rate', def: 'error_ratio', num: true, has: has('error_ratio'), cell: (m) => [percent(m.error_ratio), m.error_ratio_usual === undefined ? null : sub('usually ' + percent(m.error_ratio_usual))] },
  { id: 'errors', head: 'Errors by type', def: 'error_type', has: (m) => m.errors && Object.keys(m.errors).length > 0, cell: errors, none: () => dim('none') },
  { id: 'input_rate', head: 'Prefill', def: 'prefill', num: true, has: has('input_token_rate'), cell: (m) => rate(m.input_token_rate) + ' tokens/s' },
  { id: 'output_rate', head: 'Decode, all', def: 'decode_all', num: true, has: has('output_token_rate'), cell: (m) => rate(m.output_token_rate) + ' tokens/s' },
  { id: 'first_token', head: 'First token', def: 'first_token', num: true, has: has('first_token'), cell: (m) => inSeconds(m.first_token) },
  { id: 'decode', head: 'Decode, one request', def: 'decode', num: true, has: has('decode'), cell: (m) => h('span', { title: m.decode_basis ? 'basis: ' + m.decode_basis : null }, pair((v) => number(v) + ' tokens/s')(m.decode)) },
  { id: 'duration', head: 'Duration', def: 'duration', num: true, has: has('duration'), cell: (m) => inSeconds(m.duration) },
  limitedBy,
  { id: 'length_stops', head: 'Length stops', def: 'length_stops', num: true, has: has('length_stops'), cell: (m) => count(m.length_stops) },
  { id: 'cached', head: 'Cached', def: 'cached', num: true, has: (m) => has('cached_tokens')(m) && m.input_tokens > 0, cell: (m) => percent(m.cached_tokens / m.input_tokens) },
  { id: 'cost', head: 'Cost', def: 'cost', num: true, has: has('cost'), cell: (m) => '$' + number(m.cost) },
];

// chosen is the key of the row that the reader opened.
let chosen = '';
const isOpen = (m) => m.key === chosen;

export function toggleModel(key) {
  chosen = key === chosen ? '' : key;
}

export function modelsPart() {
  const all = list('models');
  if (all.length === 0) return null;
  const rows = all.filter((m) => (!view.kind || view.kind === 'failing') && found(m.service, m.model, m.role));
  const shown = rowsOf('models', rows, { first: 20, total: rows.length + hidden('models') });
  const expand = (m) => [h('h3', {}, 'Last calls'), callsOf('model-calls', (c) => c.service === m.service && (!m.model || !c.model || c.model === m.model))];
  return part('models', 'Models and agents', '(' + (filtered() ? rows.length + ' of ' : '') + all.length + ')', shown.controls,
    rows.length ? table('models', 'Models and agents', columns, [{ rows: shown.rows }], { expand, open: isOpen }) : note('No model matches the filters.'), shown.footer, groups.map(grouped));
}

// groups are what calls have in common, besides their models.
const groups = [['agent', 'Agents'], ['tool', 'Tools'], ['session', 'Sessions']];

const groupColumns = (head) => [
  { id: 'name', head, header: true, cell: (g) => g.name, after: (g) => [simulated(g), sub(g.service)] },
  { id: 'calls', head: 'Calls', num: true, cell: (g) => count(g.calls) },
  { id: 'failed', head: 'Failed', num: true, cell: (g) => (g.failed ? [h('strong', { class: 'error' }, count(g.failed)), sub(percent(g.failed / g.calls))] : '0') },
  { id: 'duration', head: 'Duration', def: 'duration', num: true, cell: (g) => inSeconds(g.duration) },
  { id: 'last', head: 'Last', num: true, cell: (g) => ago(g.last) },
];

// grouped describes agents, tools or sessions as rows, each of the last calls.
function grouped([field, title]) {
  const by = Map.groupBy(list('calls').filter((c) => c[field] && found(c[field], c.service)), (c) => c.service + ' ' + c[field]);
  if (by.size === 0) return null;
  const rows = [...by].map(([key, calls]) => {
    const durations = calls.map((c) => c.duration).sort((a, b) => a - b);
    const at = (share) => durations[Math.min(durations.length - 1, Math.floor(share * durations.length))];
    return { key, name: calls[0][field], service: calls[0].service, simulated: calls[0].simulated, calls: calls.length, failed: calls.filter((c) => c.error).length, duration: { p50: at(0.5), p95: at(0.95) }, last: calls[0].time };
  }).sort((a, b) => a.key.localeCompare(b.key));
  const id = field + 's';
  const shown = rowsOf(id, rows, { first: 10, leave: true });
  return h('div', { key: field, 'data-testid': 'part-' + id }, h('h3', {}, title + ' (' + rows.length + ')', dim(' of the last calls')),
    table(id, title, groupColumns(title.slice(0, -1)), [{ rows: shown.rows }], { expand: (g) => callsOf(field + '-calls', (c) => c[field] === g.name && c.service === g.service), open: isOpened(id) }), shown.footer);
}
