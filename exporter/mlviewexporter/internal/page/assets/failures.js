// The part of the page with the failures and how to get them onto one's desk.
import { h, safeURL } from './dom.js';
import { list, get, live } from './live.js';
import { view, found, filtered } from './address.js';
import { count, time, ago } from './format.js';
import { table, rowsOf, part, copyable, simulated } from './table.js';
import { jaeger, traceOf } from './waterfall.js';

function reproduce(f) {
  if (!f.command && !f.report) return jaeger(f.trace_url);
  return [
    f.command ? copyable(f.command, f.replays ? 'the command that repeats the call' : 'the command') : null,
    f.command ? h('span', { class: 'sub', key: 'does' }, f.replays ? 'Runs the failed call again.' : 'Prints what is known of the failure.') : null,
    (f.requires || []).length ? h('span', { class: 'sub', key: 'requires', 'data-testid': 'requires' }, 'Requires ' + f.requires.join(', ')) : null,
    h('span', { class: 'links', key: 'links' }, f.report && safeURL(f.report) ? h('a', { href: f.report, 'data-testid': 'report' }, 'Report') : null, jaeger(f.trace_url)),
  ];
}

const columns = [
  { id: 'last_seen', head: 'Last seen', def: 'last_seen', has: (f) => f.last_seen, cell: (f) => [time(f.last_seen), h('span', { class: 'sub' }, ago(f.last_seen))] },
  { id: 'class', head: 'Failure', header: true, cell: (f) => f.class || 'error', after: (f) => [simulated(f), f.message ? h('span', { class: 'message' }, f.message) : null] },
  { id: 'service', head: 'Service · run · version', cell: (f) => [f.service, h('span', { class: 'sub parts' },
    f.run_id ? h('span', { key: 'run', class: 'id' }, get('runs', f.run) ? h('a', { href: '?run=' + encodeURIComponent(f.run), 'data-act': 'run', 'data-arg': f.run }, 'run ' + f.run_id) : 'run ' + f.run_id) : null,
    f.version ? h('span', { key: 'version' }, 'version ' + f.version) : null, f.operation ? h('span', { key: 'op' }, f.operation) : null)] },
  { id: 'count', head: 'Count', def: 'count', num: true, cell: (f) => [count(f.count), f.variants ? h('span', { class: 'sub' }, f.variants + (f.variants === 1 ? ' variant' : ' variants')) : null] },
  { id: 'first_seen', head: 'First seen', def: 'first_seen', has: (f) => f.first_seen, cell: (f) => [time(f.first_seen), h('span', { class: 'sub' }, ago(f.first_seen))] },
  { id: 'reproduce', head: 'Reproduce', def: 'reproduce', has: (f) => f.command || f.report || f.trace_url, cell: reproduce, none: () => h('span', { class: 'dim' }, 'no reproduction') },
];

let openKey = '';
export const toggleFailure = (key) => (openKey = openKey === key ? '' : key);

export function failureTable(id, rows) {
  return table(id, 'Failures', columns, [{ rows }], rows.some(({ row }) => row.trace_id)
    ? { expand: (f) => (f.trace_id ? traceOf(f.trace_id, f.trace_url) : h('p', { class: 'dim' }, 'no trace known')), open: (f) => f.key === openKey } : {});
}

function matches(f) {
  const run = get('runs', f.run) || {};
  return (!view.owner || run.owner === view.owner) && (!view.team || run.team === view.team) && (!view.kind || view.kind === 'failing') &&
    found(f.class, f.message, f.service, f.run_id, f.version, f.operation, run.owner, run.team);
}

export function failuresPart() {
  const all = list('failures');
  const rows = all.filter(matches);
  const hidden = (live.collector.hidden || {}).failures || 0;
  const shown = rowsOf('failures', rows, { newest: true, renew: true, total: rows.length + hidden, first: 10 });
  if (shown.rows.length === 0) return part('failures', 'Failures', all.length ? '(0 of ' + all.length + ')' : '', null, h('p', { class: 'dim' }, all.length ? 'No failure matches the filters.' : 'No failure seen.'));
  return part('failures', 'Failures', '(' + (filtered() ? rows.length + ' of ' : '') + all.length + ')', shown.controls, failureTable('failures', shown.rows), shown.footer);
}
