// What the page says of a run's state and of a problem.
import { h, sub } from './dom.js';
import { get, list } from './live.js';
import { kinds, word } from './words.js';
import { percent, change, steady, stepTime, clock, unit, rate } from './format.js';

export const over = (run) => ['ended', 'failed', 'silent'].includes(run.state);

// still says why a run has no rates now, and is null while it steps.
export const still = (run) => (run.state === 'stalled' || over(run) || run.no_data_since ? (run.last_step ? 'no step since ' + clock(run.last_step, true) : 'no step') : null);

// whyNot says why a number of a run is missing, null if that is not known.
export const whyNot = (run, field) => run.why && run.why[field]
  ? field === 'token_rate' && run.sample_rate !== undefined && !still(run) ? rate(run.sample_rate) + ' samples/s' : run.why[field] : null;

const badge = (kind) => h('span', { class: 'badge k-' + (Object.hasOwn(kinds, kind) ? kind : 'other') }, word(kinds, kind));

// what says which problem it is and how bad, against what is usual.
export function what(need) {
  const time = need.unit === 's' && need.usual !== undefined;
  const measure = (v) => (!need.unit || need.unit === '1' ? percent(v) : unit(v, need.unit.replace(/[{}]/g, '')));
  // For how long it lasts is beside it.
  const size = need.value === undefined || need.unit === 's' && !time ? null : time ? change(need.value, need.usual) || stepTime(need.value) : measure(need.value);
  const usual = need.value === undefined || need.usual === undefined ? null : time ? steady(need.usual) + ' → ' + stepTime(need.value) : 'usually ' + measure(need.usual);
  return [h('span', { class: 'what' }, badge(need.kind), size ? h('strong', {}, ' ' + size) : null), usual ? sub(usual) : null];
}

// nextStep describes what to do about a problem. It leads to the failures of the
// problem's service, if these are what to look at.
export const nextStep = (need) => (['tool_errors', 'failing'].includes(need.kind) && list('failures').some((f) => f.service === need.service)
  ? h('a', { href: '?q=' + encodeURIComponent(need.service) + '#failures', 'data-act': 'failures', 'data-arg': need.service }, need.next) : need.next);

// runLink leads to a run, if it is on the page.
export const runLink = (key, text) => (key && get('runs', key) ? h('a', { href: '?run=' + encodeURIComponent(key), 'data-act': 'run', 'data-arg': key }, text) : text);
