// What the page says of a run's state and of a problem.
import { h, sub } from './dom.js';
import { get } from './live.js';
import { kinds, word } from './words.js';
import { percent, change, steady, stepTime, clock, unit } from './format.js';

export const over = (run) => run.state === 'ended' || run.state === 'silent';

// still says why a run has no rates now, and is null while it steps.
export const still = (run) => (run.state === 'stalled' || over(run) ? (run.last_step ? 'no step since ' + clock(run.last_step, true) : 'no step') : null);

const badge = (kind) => h('span', { class: 'badge k-' + (Object.hasOwn(kinds, kind) ? kind : 'other') }, word(kinds, kind));

// what says which problem it is and how bad, against what is usual.
export function what(need) {
  const time = need.unit === 's';
  const measure = (v) => (!need.unit || need.unit === '1' ? percent(v) : unit(v, need.unit.replace(/[{}]/g, '')));
  const size = need.value === undefined ? null : time ? change(need.value, need.usual) || stepTime(need.value) : measure(need.value);
  const usual = need.value === undefined || need.usual === undefined ? null : time ? steady(need.usual) + ' → ' + stepTime(need.value) : 'usually ' + measure(need.usual);
  return [h('span', { class: 'what' }, badge(need.kind), size ? h('strong', {}, ' ' + size) : null), usual ? sub(usual) : null];
}

// runLink leads to a run, if it is on the page.
export const runLink = (key, text) => (key && get('runs', key) ? h('a', { href: '?run=' + encodeURIComponent(key), 'data-act': 'run', 'data-arg': key }, text) : text);
