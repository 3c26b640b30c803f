// The part of the page with the problems that need a person.
import { h } from './dom.js';
import { list, get, live } from './live.js';
import { view, found, filtered } from './address.js';
import { kinds, word } from './words.js';
import { percent, change, number, since, steady, time, stepTime } from './format.js';
import { table, rowsOf, part, copyable, simulated } from './table.js';
import { runDetail } from './detail.js';
import { gpuTable } from './gpus.js';

const badge = (kind) => h('span', { class: 'badge k-' + (Object.hasOwn(kinds, kind) ? kind : 'other') }, word(kinds, kind));

// what says which problem it is and how bad, against what is usual.
export function what(need) {
  const time = need.unit === 's';
  const size = need.value === undefined ? null : time ? change(need.value, need.usual) || stepTime(need.value) : percent(need.value);
  const usual = need.value === undefined || need.usual === undefined ? null : time ? steady(need.usual) + ' → ' + stepTime(need.value) : 'usually ' + percent(need.usual);
  return [h('span', { class: 'what' }, badge(need.kind), size ? h('strong', {}, ' ' + size) : null), usual ? h('span', { class: 'sub' }, usual) : null];
}

const who = (need) => [need.owner ? h('span', { key: 'owner' }, 'owner ' + need.owner) : null, need.job ? h('span', { key: 'job' }, 'job ' + need.job) : null,
  need.run_id ? h('span', { key: 'id', class: 'id', title: 'run ' + need.run_id }, 'run ' + need.run_id) : null].filter(Boolean);

const columns = [
  { id: 'since', head: 'Since', def: 'since', cell: (n) => since(n.since) },
  { id: 'what', head: 'What', def: 'needs', cell: (n) => what(n) },
  { id: 'subject', head: 'Run · owner · job', header: true, cell: (n) => n.subject || n.service || n.run_id || 'unnamed',
    after: (n) => [simulated([n, get('runs', n.run), ...(n.gpus || []).map((k) => get('gpus', k))].find((row) => row && row.simulated)), h('span', { class: 'sub parts' }, who(n))] },
  { id: 'evidence', head: 'Evidence', cell: (n) => (n.evidence || []).length ? h('ul', {}, n.evidence.map((e) => h('li', {}, e))) : null },
  { id: 'before', head: 'Changed before', def: 'before', cell: (n) => (n.before || []).length
    ? h('ul', {}, n.before.map((c) => h('li', { key: c.key }, c.text, ' at ', time(c.time)))) : h('span', { class: 'dim' }, 'nothing seen') },
  { id: 'gpu_hours', head: 'GPU-hours lost', def: 'gpu_hours', num: true, has: (n) => n.gpu_hours !== undefined, cell: (n) => number(Number(n.gpu_hours.toPrecision(2))) + ' GPUh' },
  { id: 'next', head: 'Next', has: (n) => n.next || n.command, cell: (n) => [n.next ? h('span', { key: 'text' }, n.next) : null, n.command ? copyable(n.command) : null] },
];

const teamOf = (need) => (get('runs', need.run) || {}).team;

function matches(need) {
  return (!view.kind || need.kind === view.kind) && (!view.owner || need.owner === view.owner) && (!view.team || teamOf(need) === view.team) &&
    found(need.subject, need.service, need.run_id, need.job, need.owner, teamOf(need), word(kinds, need.kind), need.evidence, (need.gpus || []).map((k) => (get('gpus', k) || {}).host));
}

// openNeed is the key of the opened row.
let openNeed = '';

// toggleNeed opens or closes a row and returns the run that is then open.
export function toggleNeed(key) {
  openNeed = openNeed === key ? '' : key;
  return openNeed ? (get('needs', key) || {}).run || '' : '';
}

// shownRun is the run that an opened row shows, also of a problem that is over.
let shownRun = '';
export const isShown = (run) => shownRun === run;

export function needsPart(single) {
  const all = list('needs');
  const rows = all.filter(matches);
  const hidden = (live.collector.hidden || {}).needs || 0;
  const shown = rowsOf('needs', rows, { total: rows.length + hidden });
  if (view.run && !rows.some((n) => n.key === openNeed && n.run === view.run)) openNeed = (rows.find((n) => n.run === view.run) || {}).key || '';
  shownRun = (shown.rows.map(({ row }) => row).find((n) => n.key === openNeed) || {}).run || '';
  const counts = all.length === 0 ? '' : filtered() ? '(' + rows.length + ' of ' + all.length + ')' : '(' + all.length + ')';
  if (shown.rows.length === 0) {
    const text = filtered() && all.length ? 'No problem matches the filters.' : 'Nothing needs anyone, as far as data tells.';
    return part('needs', 'Needs someone', counts, null, h('p', { class: filtered() ? 'dim' : 'fine', 'data-testid': 'needs-none' }, text));
  }
  const expand = (need) => need.run && get('runs', need.run)
    ? single ? h('p', {}, h('a', { href: '#runs' }, 'The run is open below.')) : runDetail(need.run)
    : gpuTable((need.gpus || []).map((k) => get('gpus', k)).filter(Boolean));
  return part('needs', 'Needs someone', counts, shown.controls,
    table('needs', 'Problems that need someone', columns, [{ rows: shown.rows }], { expand, open: (n) => n.key === openNeed }), shown.footer);
}
