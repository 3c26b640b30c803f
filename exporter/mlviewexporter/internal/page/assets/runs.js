// The part of the page with the runs that have no problem of the list, or are over.
import { h, sub, dim, note } from './dom.js';
import { list, hidden, now } from './live.js';
import { view, found, filtered, whose } from './address.js';
import { states, bounds, fields, kinds, word } from './words.js';
import { still, over, whyNot } from './states.js';
import { change, count, number, percent, rate, steady, ago, clock } from './format.js';
import { table, rowsOf, part, simulated, fold, has } from './table.js';
import { runDetail } from './detail.js';
import { isShown } from './needs.js';
import { isFolded } from './folds.js';

const foldFrom = 20;

// why describes a button that says why a number is missing, the beginning in the cell.
const why = (field) => (run, text = whyNot(run, field)) => text
  ? [h('button', { type: 'button', class: 'link none', 'data-act': 'why', 'data-arg': text, 'data-term': word(fields, field), title: text, 'data-testid': 'why' }, text.split('. ')[0] + (text.includes('. ') ? ' (fix)' : ''))] : null;

// live describes a column of numbers that only a run has that steps.
const live = (column) => ({ ...column, has: (r) => !still(r) && column.has(r), none: (r) => (still(r) ? h('span', { class: 'none', title: still(r) }, '–') : column.none && column.none(r)) });

// troubles are what the pools of a run's service count: crashes and the like.
const troubles = (run) => [['crashes', 'crashes'], ['breakers', 'breaker openings'], ['alerts', 'health alerts']]
  .map(([field, text]) => [list('pools').reduce((sum, p) => sum + (p.service === run.service && p[field] || 0), 0), text])
  .filter(([n]) => n > 0).map(([n, text]) => text + ': ' + count(n));

// short describes a name in one line, which is whole on hover.
const short = (name) => h('span', { class: 'short', title: name }, name);

// columnsOf are the columns of the table, and more of them for the only run.
const columnsOf = (single) => columns.filter((c) => single || !c.single);

const columns = [
  { id: 'run', head: 'Run', header: true, cell: (r) => r.service || r.id, after: (r) => [simulated(r), h('span', { class: 'sub id', title: 'run ' + r.id }, [...new Set([r.job, r.id])].join(' '))] },
  { id: 'state', head: 'State', def: 'state', cell: (r) => [word(states, r.state), r.no_data_since ? sub('no data since ' + clock(r.no_data_since)) : null] },
  { id: 'owner', leaves: 10, head: 'Owner', has: has('owner'), cell: (r) => short(r.owner), none: () => dim('not known') },
  { id: 'job', leaves: 6, head: 'Job', has: has('job'), cell: (r) => short(r.job) },
  { id: 'gpus', head: 'GPUs', def: 'gpus', num: true, has: has('gpus'), cell: (r) => [number(r.gpus), Number.isInteger(r.gpus) ? null : sub('shared')] },
  { id: 'gpu_utilization', single: true, head: 'GPU use', def: 'utilization', num: true, has: has('gpu_utilization'), cell: (r) => percent(r.gpu_utilization) },
  { id: 'steps', head: 'Step', def: 'steps', num: true, has: has('steps'), cell: (r) => count(r.steps) },
  { id: 'step_time', head: 's/step', def: 'step_time', num: true, has: has('step_time'), cell: (r) => steady(r.step_time) },
  live({ id: 'vs_usual', leaves: 7, head: 'vs usual', def: 'usual', num: true, has: (r) => has('step_time')(r) && has('step_time_usual')(r), cell: (r) => change(r.step_time, r.step_time_usual) }),
  live({ id: 'token_rate', head: 'tokens/s', def: 'token_rate', num: true, has: has('token_rate'), none: why('token_rate'),
    cell: (r) => h('span', { title: r.token_basis ? 'basis: ' + r.token_basis : null }, rate(r.token_rate)) }),
  live({ id: 'sample_rate', leaves: 1, head: 'samples/s', def: 'sample_rate', num: true, has: has('sample_rate'), cell: (r) => rate(r.sample_rate) }),
  { id: 'loss', single: true, head: 'Loss', def: 'loss', num: true, has: has('loss'), cell: (r) => number(r.loss), none: why('loss') },
  { id: 'goodput', leaves: 5, head: 'Goodput', def: 'goodput', num: true, has: has('goodput'), cell: (r) => percent(r.goodput) },
  live({ id: 'bound', leaves: 3, head: 'Limited by', def: 'bound', has: (r) => r.bound && r.bound !== 'unknown', cell: (r) => word(bounds, r.bound) }),
  { id: 'last_checkpoint', leaves: 9, head: 'Checkpoint', def: 'checkpoint', num: true, has: has('last_checkpoint'), cell: (r) => ago(r.last_checkpoint), none: why('last_checkpoint') },
  { id: 'restarts', leaves: 4, head: 'Restarts', def: 'restarts', num: true, has: has('attempts'), cell: (r) => count(Math.max(0, r.attempts - 1)) },
  { id: 'errors', leaves: 8, head: 'Errors', def: 'errors', num: true, has: (r) => r.errors > 0 || troubles(r).length > 0, cell: (r) => [h('strong', { class: 'error' }, count(r.errors || 0)), troubles(r).map((t) => sub(t))], none: () => '0' },
  { id: 'last_step', head: 'Last step', def: 'last_step', num: true, has: has('last_step'), cell: (r) => ago(r.last_step) },
];

function matches(run) {
  return (!view.kind || (run.needs || []).includes(view.kind)) && whose(run) &&
    found(run.service, run.id, run.job, run.owner, run.team, run.version, run.hosts, word(states, run.state), (run.needs || []).map((k) => word(kinds, k)));
}

// toFold returns a function that reports whether a run is folded away: it is over, and
// has not failed within the last minute.
function toFold() {
  const failing = new Set(list('failures').filter((f) => now() - Date.parse(f.last_seen) < 60000).map((f) => f.run));
  return (run) => over(run) && !failing.has(run.key);
}

const sum = (rows, field) => rows.reduce((total, { row }) => total + (row[field] || 0), 0);

// theOver is the group of the runs that are over.
const theOver = 'ended or silent';

// groupsOf parts the runs that are over from the others, and folds these by team or
// service if they are many.
function groupsOf(runs, many, folds) {
  const by = Map.groupBy(runs, ({ row }) => (folds(row) ? theOver : many ? row.team || row.service || 'without a name' : ''));
  return [...by].sort(([a], [b]) => (a === theOver) - (b === theOver)).map(([name, rows]) => {
    const cut = rows.filter(({ row }, i) => i < 50 || row.key === view.run);
    if (name === '') return { key: '', rows: cut, all: rows };
    const id = 'runs:' + name;
    const open = !isFolded(id, !rows.some(({ row }) => row.key === view.run));
    const says = [rows.length + (rows.length === 1 ? ' run' : ' runs')];
    if (name !== theOver) {
      if (sum(rows, 'errors')) says.push(count(sum(rows, 'errors')) + ' errors');
      if (sum(rows, 'gpus')) says.push(number(sum(rows, 'gpus')) + ' GPUs');
      if (sum(rows, 'token_rate')) says.push(rate(sum(rows, 'token_rate')) + ' tokens/s');
    }
    if (open && cut.length < rows.length) says.push('showing ' + cut.length + ' of ' + rows.length + ': search for others');
    return { key: name, rows: open ? cut : [], head: [fold(id, open, name), dim(' ' + says.join(' · '))] };
  });
}

export function runsPart(single) {
  const all = list('runs');
  if (all.length === 0) return part('runs', 'Runs', '', null, note('No run is known. A run appears when a program sends spans with ml.run.id, or a client that the collector knows.'));
  const folds = toFold();
  const needing = new Set(list('needs').map((n) => n.run));
  const fine = all.filter((r) => single || !needing.has(r.key));
  const rows = fine.filter((r) => single || matches(r));
  const ended = rows.filter(folds).length;
  const title = single ? 'Run' : 'Healthy runs';
  const counts = single ? '' : '(' + (filtered() ? rows.length - ended + ' of ' + fine.filter((r) => !folds(r)).length : rows.length - ended) + ')' +
    (hidden('runs') ? ' · ' + hidden('runs') + ' more beyond the limit of the page' : '');
  const options = { expand: (run) => runDetail(run.key, single), open: (run) => isOpen(run, single), sample: rows.length > ended ? rows.filter((r) => !folds(r)) : rows };
  if (single) return part('runs', title, '', null, table('runs', 'The run', columnsOf(true), [{ rows: [{ row: all[0] }] }], options));
  if (rows.length === 0) return part('runs', title, counts, null, note(filtered() ? 'No other run matches the filters.' : 'No other run is known.'));
  const many = !filtered() && rows.length - ended > foldFrom;
  const shown = rowsOf('runs', rows, { every: true, leave: true });
  const groups = groupsOf(shown.rows, many, folds);
  const flat = groups.find((g) => g.key === '');
  return part('runs', title, counts, shown.controls, table('runs', 'Runs without a listed problem', columnsOf(false), groups, options),
    flat && flat.rows.length < flat.all.length ? h('p', { class: 'more', key: 'more', 'data-testid': 'showing-runs' }, 'showing ' + flat.rows.length + ' of ' + flat.all.length + ': search for others') : null);
}

let closed = '';

function isOpen(run, single) {
  return single ? closed !== run.key : view.run === run.key && !isShown(run.key);
}

// toggleRun opens or closes a row and returns the run that is then open.
export function toggleRun(key, single) {
  if (single) closed = closed === key ? '' : key;
  return view.run === key || (single && closed) ? '' : key;
}

// singleOpen reports whether the only run is open, which shows what is missing.
export const singleOpen = () => list('runs').length === 1 && closed !== list('runs')[0].key;

