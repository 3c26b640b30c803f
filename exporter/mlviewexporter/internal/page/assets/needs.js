// The part of the page with the problems that need a person.
import { h, dim, sub } from './dom.js';
import { list, get, hidden } from './live.js';
import { view, found, filtered, whose } from './address.js';
import { kinds, severities, word } from './words.js';
import { number, since, time, ago, age, span } from './format.js';
import { table, rowsOf, part, copyable, simulated, fold } from './table.js';
import { what, nextStep } from './states.js';
import { runDetail } from './detail.js';
import { gpuTable } from './gpus.js';
import { callsOf } from './calls.js';
import { isFolded, isOpen } from './folds.js';

// owner says whose the problem is. What is missing says how to name an owner.
const owner = (need) => need.owner || need.team
  ? h('span', { key: 'owner' }, need.owner ? 'owner ' + need.owner : 'team ' + need.team)
  : h('a', { key: 'owner', href: '#missing' }, 'owner not known');

const who = (need) => [owner(need), need.job ? h('span', { key: 'job' }, (/^(slurm job|pod|container|user) /.test(need.job) ? '' : 'job ') + need.job) : null,
  need.id ? h('span', { key: 'problem', class: 'id', title: 'Was it right? Add a line to the file verdicts of the state directory of ml_metrics: ' + need.kind + ' ' + need.id + ' right (or wrong)' }, 'problem ' + need.id) : null,
  need.run_id ? h('span', { key: 'id', class: 'id', title: 'run ' + need.run_id }, 'run ' + need.run_id) : null].filter(Boolean);

// follows names the problem that one follows from.
const follows = ({ cause }, of = get('needs', cause)) => (of ? sub('follows: ' + word(kinds, of.kind) + ', ' + of.subject) : null);

// urgency says which problem to take first. One that follows from another has no place
// of its own. One without new evidence may be over.
const urgency = (n) => (n.no_evidence_since ? dim(n.urgency + ' no new evidence for ' + age(n.no_evidence_since))
  : get('needs', n.cause) ? dim('follows ' + n.urgency) : [h('strong', {}, n.urgency), ' ' + word(severities, n.severity)]);

const where = { id: 'subject', head: 'Run · owner · job', header: true, cell: (n) => n.subject || n.service || n.run_id || 'unnamed',
  after: (n) => [follows(n), h('span', { class: 'sub parts' }, simulated(n), ' ', who(n))] };

const evidence = { id: 'evidence', head: 'Evidence', cell: (n) => (n.evidence || []).length ? h('ul', {}, n.evidence.map((e) => h('li', {}, e))) : null };

const lost = { id: 'gpu_hours', head: 'GPUh lost', def: 'gpu_hours', num: true, cell: (n) => (n.gpu_hours === undefined ? null : number(Number(n.gpu_hours.toPrecision(2)))) };

const columns = [
  { id: 'urgency', head: 'Urgency', def: 'urgency', cell: urgency },
  { id: 'since', head: 'Since', def: 'since', cell: (n) => since(n.since) },
  { id: 'what', head: 'What', def: 'needs', cell: (n) => what(n) },
  where,
  evidence,
  { id: 'before', head: 'Changed before', def: 'before', cell: (n) => (n.before || []).length
    ? h('ul', {}, n.before.map((c) => h('li', { key: c.key }, c.text, ' at ', time(c.time)))) : dim('nothing seen') },
  lost,
  { id: 'next', head: 'Next', cell: (n) => [n.next ? h('span', { key: 'text' }, nextStep(n)) : null, n.command ? copyable(n.command) : null] },
];

const teamOf = (need) => need.team || (get('runs', need.run) || {}).team;

function matches(need) {
  return (!view.kind || need.kind === view.kind) && whose({ owner: need.owner, team: teamOf(need) }) &&
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
  const shown = rowsOf('needs', rows, { total: rows.length + hidden('needs') });
  if (view.run && !rows.some((n) => n.key === openNeed && n.run === view.run)) openNeed = (rows.find((n) => n.run === view.run) || {}).key || '';
  shownRun = (shown.rows.map(({ row }) => row).find((n) => n.key === openNeed) || {}).run || '';
  const counts = all.length === 0 ? '' : filtered() ? '(' + rows.length + ' of ' + all.length + ')' : '(' + all.length + ')';
  if (shown.rows.length === 0) {
    const text = filtered() && all.length ? 'No problem matches the filters.' : 'No problems detected.';
    return part('needs', 'Needs attention', counts, h('span', { class: filtered() ? 'dim' : 'fine', 'data-testid': 'needs-none' }, text));
  }
  const expand = (need) => detailOf(need, single);
  return part('needs', 'Needs attention', counts, [h('span', { class: 'dim', key: 'note' }, 'Work from the top. Linked problems usually clear together. An error ratio that is usual for its service is not listed.'), shown.controls],
    table('needs', 'Problems that need attention', columns, [{ rows: shown.rows }], { expand, open: (n) => n.key === openNeed, rove: true }), shown.footer);
}

// detailOf describes the run of a problem, else its GPUs or its service's calls.
function detailOf(need, single) {
  if (need.run && get('runs', need.run)) return single ? h('p', {}, h('a', { href: '#runs' }, 'The run is open below.')) : runDetail(need.run);
  const gpus = (need.gpus || []).map((k) => get('gpus', k)).filter(Boolean);
  return gpus.length || !need.service ? gpuTable(gpus) : callsOf('need-calls', (c) => c.service === need.service && c.error);
}

// ends say why a problem has ended.
const ends = { over: 'no longer seen', no_evidence: 'no new evidence for long: not known any more' };

const resolvedColumns = [
  { id: 'ended', head: 'Ended', cell: (n) => [time(n.ended), sub(ago(n.ended))] },
  { id: 'what', head: 'What', def: 'needs', cell: (n) => what(n) },
  where,
  { id: 'duration', head: 'Duration', cell: (n) => [span((Date.parse(n.ended) - Date.parse(n.since)) / 1000), sub(word(ends, n.end_reason))] },
  evidence,
  lost,
];

// resolvedPart has the problems that ended within the last 24 hours.
export function resolvedPart() {
  const all = list('resolved');
  if (all.length === 0) return null;
  const rows = all.filter(matches);
  const shown = rowsOf('resolved', rows, { newest: true, total: rows.length + hidden('resolved') });
  const open = !isFolded('resolved', !filtered() && all.length > 8);
  return part('resolved', 'Resolved in the last 24 hours', '(' + (filtered() ? rows.length + ' of ' : '') + all.length + ')', rows.length ? [shown.controls, fold('resolved', open, open ? 'Fold' : 'Show')] : null,
    open && shown.rows.length ? [table('resolved', 'Problems that have ended', resolvedColumns, [{ rows: shown.rows }], { expand: (n) => detailOf(n, list('runs').length === 1), open: isOpen('resolved') }), shown.footer] : null);
}
