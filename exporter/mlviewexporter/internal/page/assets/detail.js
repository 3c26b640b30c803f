// What an opened run shows.
import { h, dim, note } from './dom.js';
import { get, live, list, now } from './live.js';
import { view } from './address.js';
import { states, bounds, fields, curves as curveNames, word } from './words.js';
import { number, count, percent, rate, bytes, time, clock, ago, age, seconds, change, stepTime, unit } from './format.js';
import { table, head, copyable } from './table.js';
import { what, still, whyNot, nextStep } from './states.js';
import { fetched } from './fetched.js';
import { lastTraces } from './waterfall.js';
import { callTable } from './calls.js';
import { failureTable } from './failures.js';
import { missingTable } from './missing.js';
import { rankTable } from './ranks.js';
import { chart } from './charts.js';
import { gpuTable } from './gpus.js';
import { comparison, reports } from './compare.js';

function fact(name, def, value, title) {
  if (value === null || value === undefined) return null;
  return h('div', { key: name, class: 'fact', 'data-testid': 'fact-' + (def || name) }, h('dt', {}, head(name, def)), h('dd', { title: title || null }, value));
}

// moving describes a number of now, which a run without steps has not.
const moving = (run, text) => (text !== null && still(run) ? h('span', { class: 'none' }, 'none: ' + still(run)) : text);

// facts are the numbers of a run that are known, and why others are not.
function facts(run) {
  const missing = Object.keys(run.why || {}).map((field) =>
    h('div', { key: 'why-' + field, class: 'fact wide', 'data-testid': 'why-' + field }, h('dt', {}, word(fields, field)), h('dd', {}, whyNot(run, field))));
  return h('dl', { class: 'facts', key: 'facts' }, [
    fact('State', 'state', [word(states, run.state), run.state_since ? [' since ', time(run.state_since)] : null]),
    fact('Limited by', 'bound', moving(run, run.bound && run.bound !== 'unknown' ? word(bounds, run.bound) : null)),
    fact('Step', 'steps', count(run.steps)),
    fact('Step time', 'step_time', run.step_time === undefined ? null : [stepTime(run.step_time), ' median of the last 20 steps']),
    fact('Usual step time', 'usual', run.step_time_usual === undefined ? null : [stepTime(run.step_time_usual), run.step_time === undefined || still(run) ? null : ' (now ' + change(run.step_time, run.step_time_usual) + ')']),
    fact('Tokens', 'token_rate', moving(run, unit(run.token_rate, 'tokens/s')), run.token_basis && 'basis: ' + run.token_basis),
    fact('Tokens in all', 'tokens', unit(run.tokens, 'tokens')),
    fact('Samples', 'sample_rate', moving(run, unit(run.sample_rate, 'samples/s'))),
    fact('Loss', 'loss', run.loss === undefined ? null : [number(run.loss), run.loss_scope ? ' (' + run.loss_scope + ')' : null]),
    fact('Learning rate', '', run.learning_rate && String(Number(run.learning_rate.toPrecision(3)))),
    fact('Epoch', '', number(run.epoch)),
    fact('Goodput', 'goodput', percent(run.goodput)),
    fact('GPUs', 'gpus', number(run.gpus)),
    fact('GPU use', 'utilization', percent(run.gpu_utilization)),
    fact('Ranks', 'ranks', run.ranks ? count(run.ranks) + (run.hosts && run.hosts.length ? ' on ' + run.hosts.length + (run.hosts.length === 1 ? ' host' : ' hosts') : '') : null, (run.hosts || []).slice(0, 50).join(', ') || null),
    fact('Restarts', 'restarts', run.attempts && count(Math.max(0, run.attempts - 1))),
    fact('Last step', 'last_step', ago(run.last_step)),
    fact('Last checkpoint', 'checkpoint', ago(run.last_checkpoint)),
    fact('Errors', 'errors', count(run.errors)),
    fact('Version', '', run.version || null),
    fact('First seen', '', time(run.first_seen)),
    missing,
  ]);
}

const block = (id, title, ...content) => h('div', { key: id, class: 'block b-' + id, role: 'group', 'aria-label': title, 'data-testid': 'detail-' + id }, h('h3', {}, title), content);

const shade = ['productive', 'rework', 'checkpoint', 'checkpoint_restore', 'validation', 'data_load', 'queue', 'startup', 'idle', 'other', 'unknown'];

// within names a time of so many seconds, or that since the run was first seen.
const within = (run, seconds, text) => now() - Date.parse(run.first_seen) < seconds * 1000 ? ' since ' + clock(run.first_seen, true) : text;

// timeBar shows what the run's time went to. Of a run that hangs, time without a
// span is that since its last one.
function timeBar(run, ratio) {
  const parts = Object.entries(ratio || {}).filter(([, v]) => v > 0).sort((a, b) => b[1] - a[1]);
  if (parts.length === 0) return null;
  const text = (state, v) => word({ data_load: 'loads data', checkpoint_restore: 'restores a checkpoint', unknown: still(run) ? 'no span since the last step' : 'no span' }, state) + ' ' + percent(v);
  const shadeOf = (state) => (state === 'unknown' && run.state === 'stalled' ? 'a-looks_hung' : 't' + shade.indexOf(state));
  return block('time', 'Time' + within(run, 900, ' of the last 15 minutes'),
    h('div', { class: 'bar', role: 'img', 'aria-label': parts.map(([s, v]) => text(s, v)).join(', ') },
      parts.map(([s, v]) => h('span', { key: s, class: 'seg ' + shadeOf(s), css: { width: v * 100 + '%' }, title: text(s, v) }))),
    h('p', { class: 'legend' }, parts.map(([s, v]) => h('span', { key: s }, h('i', { class: 'dot ' + shadeOf(s) }), text(s, v)))));
}

function phases(run, rows) {
  if (!rows || rows.length === 0) return null;
  const columns = [
    { id: 'phase', head: 'Phase', def: 'phase', header: true, cell: (p) => p.phase },
    { id: 'seconds_per_step', head: 'Mean time', def: 'phase', num: true, has: (p) => p.seconds_per_step !== undefined, cell: (p) => stepTime(p.seconds_per_step) },
    { id: 'share', head: 'Share of the step', num: true, has: (p) => p.share !== undefined, cell: (p) => [h('span', { class: 'bar little' }, h('span', { class: 'seg t0', css: { width: Math.min(100, p.share * 100) + '%' } })), h('span', { class: 'share' }, percent(p.share))] },
  ];
  return block('phases', 'Phases of a step, means of all ranks' + within(run, 300, ', last 5 minutes'), table('phases', 'Phases', columns, [{ rows: rows.map((p) => ({ row: { ...p, key: p.phase } })) }], { compact: true }));
}

const ranges = { '600': '10 min', '3600': '1 h', '': 'all' };
const unitOf = { ratio: percent, '1': percent, bytes, By: bytes, s: stepTime, W: (v) => unit(v, 'W'), '{sample}/s': (v) => rate(v) + ' samples/s' };

// ofSteps are the curves that end with the last step.
const ofSteps = ['loss', 'step_time', 'token_rate', 'validation_loss', 'learning_rate', 'sample_rate'];

function curveBlock(detail) {
  const shown = (detail.curves || []).filter((c) => c.times.length > 1);
  if (shown.length === 0) return block('curves', 'Curves', note('No curve yet: a curve needs two points.'));
  const marks = (detail.marks || []).slice(-10);
  const first = Math.min(...shown.map((c) => c.times[0]));
  const from = view.range ? Math.max(first, now() / 1000 - Number(view.range)) : first;
  return block('curves', 'Curves',
    h('p', { class: 'buttons' }, Object.entries(ranges).map(([value, text]) =>
      h('button', { key: value, type: 'button', class: 'small', 'data-act': 'range', 'data-arg': value, 'aria-pressed': String(view.range === value) }, text))),
    h('div', { class: 'charts' }, shown.map((c) => chart(view.range === '600' && c.fine ? { ...c, ...c.fine } : c, marks, word(curveNames, c.name), formatOf(c), axisOf(c), from, ofSteps.includes(c.name) && still(detail.run)))),
    marks.length ? h('ul', { class: 'marks', 'aria-label': 'Marks on the curves' }, marks.map((m, i) =>
      h('li', { key: i + m.time, 'data-testid': 'mark' }, h('i', { class: 'dot m-' + (m.kind === 'change' || m.kind === 'failure' ? m.kind : 'need') }), (i + 1) + ': ', time(m.time), ' ', m.text))) : null);
}

function formatOf(curve) {
  if (curve.name === 'step_time') return stepTime;
  if (curve.name === 'token_rate') return (v) => rate(v) + ' tokens/s';
  return unitOf[curve.unit] || ((v, digits) => number(v, digits) + (curve.unit ? ' ' + curve.unit : ''));
}

// axisOf writes the numbers of an axis, which has little room.
function axisOf(curve) {
  if (curve.name === 'step_time') return (v, digits) => number(v, digits) + ' s';
  if (curve.name === 'token_rate' || curve.name === 'sample_rate') return rate;
  if (curve.unit === 'W') return (v, digits) => (v >= 1000 ? number(v / 1000, digits) + ' kW' : unit(v, 'W', digits));
  return formatOf(curve);
}

function needLine(need) {
  return h('div', { key: need.key, class: 'callout' }, what(need), ' since ', time(need.since), ' (' + age(need.since) + ')',
    h('ul', {}, (need.evidence || []).map((e) => h('li', {}, e)), (need.before || []).map((c) => h('li', { key: c.key }, 'before: ', c.text, ' at ', time(c.time)))),
    need.next ? h('p', {}, 'Next: ', nextStep(need)) : null, need.command ? copyable(need.command) : null);
}

// runDetail describes an opened run. With one run the curves and what is missing
// come first.
export function runDetail(key, single) {
  const entry = fetched('/api/v1/runs/' + encodeURIComponent(key), Math.max(4, live.collector.interval || 2));
  const row = get('runs', key);
  const detail = entry.data || {};
  const run = row || detail.run;
  if (!run) return h('p', { class: 'dim', 'data-testid': 'run-detail' }, entry.missing ? 'The collector no longer has this run.' : 'Loading…');
  const calls = detail.calls || [];
  const gpus = (run.gpu_keys || []).map((k) => get('gpus', k)).filter(Boolean);
  const missing = list('missing');
  const parts = {
    needs: single ? null : (detail.needs || []).filter((n) => view.run !== key || !get('needs', n.key)).map(needLine),
    facts: facts(run),
    curves: entry.data ? curveBlock(detail) : h('p', { key: 'curves', class: 'dim' }, entry.missing ? 'The collector has no details of this run.' : 'Loading…'),
    missing: single && missing.length ? h('section', { key: 'missing', id: 'missing', class: 'block', 'aria-label': 'Data gaps', 'data-testid': 'part-missing' }, h('h3', {}, 'Data gaps'), missingTable(missing.map((m) => ({ row: m })))) : null,
    ranks: (detail.ranks || []).length || (detail.missing_ranks || []).length ? block('ranks', 'Ranks', rankTable(detail)) : null,
    time: timeBar(run, detail.time_ratio),
    phases: phases(run, detail.phases),
    gpus: !single && gpus.length ? block('gpus', 'GPUs', gpuTable(gpus)) : null,
    traces: (detail.traces || []).length ? block('traces', 'Last traces', lastTraces(key, detail.traces)) : null,
    failures: (detail.failures || []).length ? block('failures', 'Failures', failureTable('run-failures', detail.failures.map((f) => ({ row: f })))) : null,
    calls: calls.length ? block('calls', 'Last calls', callTable('run-calls', calls.slice(0, 20).map((c) => ({ row: c })))) : null,
  };
  const order = single ? ['curves', 'missing', 'facts', 'phases', 'time', 'ranks', 'traces', 'failures', 'calls'] : ['needs', 'facts', 'ranks', 'curves', 'phases', 'time', 'gpus', 'failures', 'traces', 'calls'];
  return h('div', { class: 'run', key: 'run-' + key, 'data-testid': 'run-detail', 'data-key': key }, single ? null : h('p', { class: 'runhead', key: 'head' }, h('strong', {}, run.service || 'run'), dim([' · run ' + run.id, run.owner ? ' · owner ' + run.owner : null, run.job ? ' · job ' + run.job : null])),
    comparison(key), order.map((name) => parts[name]), reports(key),
    h('p', { class: 'sub', key: 'id' }, 'run ' + run.id + ' · ', seconds(live.collector.interval), ' between updates'));
}
