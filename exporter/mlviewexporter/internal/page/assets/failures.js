// The part of the page with the failures and how to get them onto one's desk.
import { h, safeURL, sub, note } from './dom.js';
import { runLink } from './states.js';
import { list, get, hidden } from './live.js';
import { view, found, filtered, whose } from './address.js';
import { count, time, ago } from './format.js';
import { classOf } from './words.js';
import { table, rowsOf, part, copyable, simulated, read } from './table.js';
import { isOpen } from './folds.js';
import { jaeger, traceOf } from './waterfall.js';

// doing says what a command does, or why there is none.
function doing(f) {
  if (!f.command) return f.why ? 'Reproduction: ' + f.why + '.' : 'No reproduction.';
  if (!f.replays) return 'Prints what is known' + (f.why ? '. No replay: ' + f.why : ' of the failure') + '.';
  return 'Runs the failed call again, and may ask first.';
}

function reproduce(f) {
  return [
    f.command ? copyable(f.command, f.replays ? 'the command that repeats the call' : 'the command') : null,
    h('span', { class: f.command ? 'sub' : 'dim', key: 'does' }, doing(f)),
    (f.requires || []).length ? h('span', { class: 'sub', key: 'requires', 'data-testid': 'requires' }, 'Requires ' + f.requires.join(', ')) : null,
    h('span', { class: 'links', key: 'links' }, f.report && safeURL(f.report) ? h('a', { href: f.report, 'data-testid': 'report' }, 'Report') : null, jaeger(f.trace_url)),
  ];
}

const columns = [
  { id: 'last_seen', head: 'Last seen', has: (f) => f.last_seen, cell: (f) => [time(f.last_seen), sub(ago(f.last_seen))] },
  { id: 'class', head: 'Failure', header: true, cell: (f) => classOf(f.class) || 'error', after: (f) => [simulated(f), f.message ? h('span', { class: 'message' }, f.message) : null] },
  { id: 'service', head: 'Service · run · version', cell: (f) => [f.service, h('span', { class: 'sub parts' },
    f.run_id ? h('span', { key: 'run', class: 'id' }, runLink(f.run, 'run ' + f.run_id)) : null,
    f.version ? h('span', { key: 'version' }, 'version ' + f.version) : null, f.operation ? h('span', { key: 'op' }, f.operation) : null)] },
  { id: 'count', head: 'Count', def: 'count', num: true, cell: (f) => [count(f.count), f.variants ? sub(f.variants + (f.variants === 1 ? ' variant' : ' variants')) : null] },
  { id: 'first_seen', head: 'First seen', has: (f) => f.first_seen, cell: (f) => [time(f.first_seen), sub(ago(f.first_seen))] },
  { id: 'reproduce', head: 'Reproduce', def: 'reproduce', cell: reproduce },
];

export function failureTable(id, rows) {
  return table(id, 'Failures', columns, [{ rows }], { expand: (f) => (f.trace_id ? traceOf(f.trace_id, f.trace_url) : note('No trace is known of it.')), open: isOpen(id) });
}

function matches(f) {
  const run = get('runs', f.run) || {};
  return whose(run) && (!view.kind || view.kind === 'failing') &&
    found(f.class, f.message, f.service, f.run_id, f.version, f.operation, run.owner, run.team);
}

// last is the failure that the line above the table names. It stays while the part is
// read, so that no other command is copied.
let last;

function lastLine(rows) {
  if (!last || !read('failures') || !rows.some((f) => f.key === last.key)) last = rows[0];
  last = rows.find((f) => f.key === last.key);
  return h('div', { key: 'last', class: 'callout', 'data-testid': 'last-failure', 'data-key': last.key },
    'Last: ', h('strong', {}, classOf(last.class) || 'error'), last.operation ? ' in ' + last.operation : null, last.service ? ' of ' + last.service : null, ' ', ago(last.last_seen), '. ', doing(last),
    last.command ? copyable(last.command) : null);
}

export function failuresPart() {
  const all = list('failures');
  const rows = all.filter(matches);
  const shown = rowsOf('failures', rows, { newest: true, renew: 'failures', total: rows.length + hidden('failures'), first: innerWidth < 640 ? 4 : 10 });
  if (shown.rows.length === 0) return part('failures', 'Failures', all.length ? '(0 of ' + all.length + ')' : '', null, note(all.length ? 'No failure matches the filters.' : 'No failure seen.'));
  return part('failures', 'Failures', '(' + (filtered() ? rows.length + ' of ' : '') + all.length + ')', shown.controls, rows.length ? lastLine(rows) : null, failureTable('failures', shown.rows), shown.footer);
}
