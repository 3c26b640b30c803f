// A run beside another one: the last good one, or one that the reader chooses.
import { h } from './dom.js';
import { live } from './live.js';
import { curves as curveNames, word } from './words.js';
import { number, count, percent, bytes, seconds, stepTime, time, unit, change, rate, clock } from './format.js';
import { table } from './table.js';
import { isFolded } from './folds.js';
import { fetched } from './fetched.js';
import { pairChart } from './charts.js';

// What the reader has chosen of each run: the other run, the curve and the axis.
const chosen = new Map();

const choice = (key) => chosen.get(key) || { with: '', curve: '', by: '' };

// choose takes a choice over, of which name says what it is.
export function choose(name, key, value) {
  chosen.set(key, { ...choice(key), [name]: value });
}

const axes = { steps: 'by step', epochs: 'by epoch', elapsed: 'by time' };

// titleOf names a number of the whole run.
function titleOf(name) {
  const [, of, , how] = name.match(/^(.*?)(_(last|least|most|mean|median))?$/);
  const title = { token_rate: 'Tokens/s', sample_rate: 'Samples/s', gpu_hours: 'GPU-hours' }[of] || word(curveNames, of);
  return title[0].toUpperCase() + title.slice(1) + (how ? ', ' + (how === 'most' ? 'largest' : how) : '');
}

const writers = { s: seconds, '1': percent, By: bytes, W: (v) => unit(v, 'W'), h: number, '{token}/s': rate, '{sample}/s': rate, '{step}': count, '{token}': number, '{error}': count, '{attempt}': count };
const write = (v, of) => (writers[of] || number)(v);

function select(name, key, value, label, options) {
  return h('label', { key: name }, h('span', {}, label + ' '), h('select', { value, 'data-act-choose': name, 'data-arg': key, 'data-testid': 'compare-' + name },
    options.map(([v, text]) => h('option', { key: v, value: v }, text))));
}

// pairs puts the numbers of both runs beside each other.
function pairs(id, title, run, other, name) {
  const with_ = new Map(other.map((n) => [n.name, n]));
  const names = [...run, ...other.filter((n) => !run.some((m) => m.name === n.name))];
  const value = (of, n) => (of ? write(of.value, n.unit) : null);
  const own = new Map(run.map((n) => [n.name, n]));
  const columns = [
    { id: 'name', head: title, header: true, cell: (n) => name(n.name) },
    { id: 'run', head: 'This run', num: true, cell: (n) => value(own.get(n.name), n) },
    { id: 'with', head: 'The other', num: true, cell: (n) => value(with_.get(n.name), n) },
    { id: 'difference', head: 'Difference', num: true, cell: (n) => (own.has(n.name) && with_.has(n.name) ? change(own.get(n.name).value, with_.get(n.name).value) : null) },
  ];
  return table(id, title, columns, [{ rows: names.map((n) => ({ row: { ...n, key: n.name } })) }], { compact: true });
}

function settings(c) {
  if (c.settings.length === 0) return h('p', { key: 'settings' }, 'No setting that is known differs; ' + c.equal + ' are equal.');
  const columns = [
    { id: 'name', head: 'Setting', header: true, cell: (s) => s.name },
    { id: 'run', head: 'This run', cell: (s) => s.run || null },
    { id: 'with', head: 'The other', cell: (s) => s.with || null },
  ];
  return table('compare-settings', 'Settings that differ', columns, [{ rows: c.settings.map((s) => ({ row: { ...s, key: s.name } })) }], { compact: true });
}

// parted says where the losses part.
function parted(p) {
  if (!p) return 'The losses cannot be compared: a run has none.';
  const at = (v) => (p.by === 'steps' ? 'step ' + count(v) : seconds(v));
  if (!p.positions) return 'The losses have fewer than 20 positions in common and are not compared.';
  if (!p.parted) return 'The losses do not part between ' + at(p.from) + ' and ' + at(p.to) + '.';
  return ['The losses part at ' + at(p.at), p.time ? [', ', time(p.time)] : null, ': ' + number(p.run) + ' here, ' + number(p.with) + ' in the other run.'];
}

function curve(c, key, pick, first) {
  const names = c.run.curves.map((r) => r.name).filter((name) => c.with.curves.some((w) => w.name === name));
  if (names.length === 0) return h('p', { key: 'none' }, 'The runs have no curve in common.');
  const name = [pick.curve, first, 'loss', names[0]].find((n) => names.includes(n));
  const [a, b] = [c.run, c.with].map((run) => run.curves.find((r) => r.name === name));
  const able = Object.keys(axes).filter((by) => a[by].length && b[by].length);
  const by = able.includes(pick.by) ? pick.by : able[0];
  const numbers = name === 'step_time' ? stepTime : (v) => write(v, a.unit);
  const at = by === 'elapsed' ? seconds : by === 'steps' ? count : number;
  const mark = c.parting && c.parting.parted && c.parting.curve === name && c.parting.by === by ? c.parting.at : null;
  return [
    h('p', { key: 'choices', class: 'buttons' }, select('curve', key, name, 'Curve', names.map((n) => [n, word(curveNames, n)])), select('by', key, by, 'over', able.map((x) => [x, axes[x]]))),
    pairChart('compare', word(curveNames, name) + ' ' + axes[by], { times: a[by], values: a.values }, { times: b[by], values: b.values }, numbers, at, mark),
  ];
}

const label = (o) => (o.good ? 'good: ' : '') + o.service + ' ' + o.id + ', ' + clock(Date.parse(o.first_seen));

// comparable are the numbers that do not grow with the length of a run, and whether more
// of them is worse (1), better (-1) or neither.
const comparable = { step_time_median: 1, token_rate_median: -1, sample_rate_median: -1, goodput_mean: -1, gpu_utilization_median: -1, gpu_memory_most: 0, power_median: 0 };

// little is the difference from which on one is told, as a part of the other value.
const little = 0.03;

// differences are those that matter, the largest first: of numbers by their change, of
// phases by their part of a step, and of the losses if they part.
function differences(c) {
  const found = [];
  const add = (name, title, run, other, text, size, worse) => size >= little && found.push({ name, title, size, worse, change: change(run, other), text: text(other) + ' → ' + text(run) });
  const others = new Map(c.with.numbers.map((n) => [n.name, n.value]));
  for (const n of c.run.numbers) {
    const other = others.get(n.name);
    if (Object.hasOwn(comparable, n.name) && other > 0) add(n.name.replace(/_(median|mean|most)$/, ''), titleOf(n.name.replace(/_(median|mean)$/, '')), n.value, other, (v) => (n.name === 'step_time_median' ? stepTime(v) : write(v, n.unit)), Math.abs(n.value / other - 1), comparable[n.name] * (n.value - other) > 0);
  }
  const phases = new Map(c.with.phases.map((p) => [p.name, p.value]));
  const step = phases.get('step') || [...phases.values()].reduce((a, b) => a + b, 0);
  for (const p of c.run.phases) {
    if (p.name !== 'step' && phases.has(p.name)) add('', p.name, p.value, phases.get(p.name), stepTime, Math.abs(p.value - phases.get(p.name)) / step, p.value > phases.get(p.name));
  }
  const p = c.parting;
  if (p && p.parted && p.with) add(p.curve, 'Loss at ' + (p.by === 'steps' ? 'step ' + count(p.at) : seconds(p.at)), p.run, p.with, number, Math.abs(p.run / p.with - 1), p.run > p.with);
  return found.sort((x, y) => y.size - x.size);
}

const told = (d) => [d.change ? h('strong', { class: d.worse ? 'error' : 'ok' }, d.change) : null, ' ' + d.text];

// comparison describes the run beside its last good one, or one that the reader chooses:
// the largest difference first, everything once it is asked for.
export function comparison(key) {
  const pick = choice(key);
  const entry = fetched('/api/v1/runs/' + encodeURIComponent(key) + '/compare' + (pick.with ? '?with=' + encodeURIComponent(pick.with) : ''), Math.max(10, live.collector.interval || 2));
  const c = entry.data;
  if (!c) return h('p', { key: 'compare', class: 'dim' }, entry.missing ? null : 'Loading the comparison…');
  const others = c.others.length ? h('span', { key: 'other' }, select('with', key, pick.with, 'with', [['', 'the last good run'], ...c.others.map((o) => [o.key, label(o)])])) : null;
  if (!c.with) return h('div', { key: 'compare', class: 'block b-compare', 'data-testid': 'compare-none' }, h('p', { class: 'dim' }, 'Not compared: ' + c.why + ' ', others));
  const all = differences(c);
  const fold = 'compare ' + key;
  const closed = isFolded(fold, true);
  const [first, ...more] = all;
  return h('div', { key: 'compare', class: 'block b-compare', role: 'group', 'aria-label': 'Comparison with another run', 'data-testid': 'detail-compare' },
    h('h3', { key: 'head' }, pick.with ? 'Compared ' : 'Compared with the last good run ', others),
    h('div', { key: 'both', class: 'beside' },
      h('div', {},
        h('p', { key: 'headline', class: 'headline', 'data-testid': 'headline' }, first ? [first.title + ' ', told(first)] : 'No number differs by ' + percent(little) + ' or more.'),
        more.length ? h('dl', { key: 'more', class: 'facts' }, more.slice(0, 5).map((d) => h('div', { key: d.title, class: 'fact' }, h('dt', {}, d.title), h('dd', {}, told(d))))) : null,
        h('p', { key: 'parted', 'data-testid': 'parted' }, parted(c.parting)),
        h('p', { key: 'with', class: 'dim' }, 'The other run is ' + c.with.run.id + ' of ' + c.with.run.service + ', first seen ', time(c.with.run.first_seen), '. ' + (c.settings.length ? c.settings.length + (c.settings.length === 1 ? ' setting differs: ' : ' settings differ: ') + c.settings.slice(0, 4).map((s) => s.name + ' ' + (s.with || '–') + ' → ' + (s.run || '–')).join(', ') : 'No known setting differs.')),
        h('button', { key: 'all', type: 'button', class: 'link opener', 'data-act': 'fold', 'data-arg': fold, 'aria-expanded': String(!closed), 'data-testid': 'compare' }, 'All numbers, phases and settings')),
      h('div', {}, curve(c, key, pick, first && first.name))),
    closed ? null : [
      pairs('compare-numbers', 'Whole run', c.run.numbers, c.with.numbers, titleOf),
      c.run.phases.length || c.with.phases.length ? pairs('compare-phases', 'Phase of a step', c.run.phases, c.with.phases, (n) => n) : null,
      settings(c),
      c.changes.length ? h('ul', { key: 'changes', 'aria-label': 'Changes between the two runs' }, c.changes.slice(0, 20).map((x) => h('li', { key: x.key }, time(x.time), ' ', x.text))) : null,
    ]);
}

// reports links to the report of the run.
export const reports = (key) => h('p', { key: 'reports', class: 'links' }, 'Report: ', [['html', 'HTML report'], ['md', 'Markdown for an issue'], ['json', 'JSON']].map(([format, text]) =>
  h('a', { key: format, href: '/api/v1/runs/' + encodeURIComponent(key) + '/report?format=' + format, target: '_blank', rel: 'noreferrer', 'data-testid': 'report-' + format }, text)));
