// A trace as a waterfall, with its critical path marked.
import { h, safeURL, note } from './dom.js';
import { seconds, time } from './format.js';
import { isFolded } from './folds.js';
import { fold } from './table.js';
import { fetched } from './fetched.js';

// few is how many spans of a trace are shown first, most how many at all.
const few = 30;
const most = 500;

export function jaeger(url) {
  return safeURL(url) ? h('a', { href: url, rel: 'noreferrer noopener', target: '_blank', 'data-testid': 'trace-link' }, 'Open in Jaeger') : null;
}

// shownOf returns the spans of a long trace to show first: the chain that decided
// its end if that is known, else the last ones.
function shownOf(spans) {
  const critical = spans.filter((s) => s.critical);
  return critical.length ? critical.slice(-few) : spans.slice(-few);
}

function spanRow(s, from, total) {
  const percentOf = (v) => Math.min(100, Math.max(0, (v / total) * 100)).toFixed(1) + '%';
  return h('li', { key: s.id, class: s.critical ? 'critical' : null, 'data-testid': s.critical ? 'span-critical' : 'span', title: [s.phase || s.operation, s.service].filter(Boolean).join(' · ') || null },
    h('span', { class: 'name', css: { 'padding-left': Math.min(s.depth, 12) * 0.7 + 'rem' } }, s.critical ? h('span', { class: 'hidden' }, 'critical path: ') : null, s.name, s.error ? h('span', { class: 'error' }, ' ' + s.error) : null),
    h('span', { class: 'lane' }, h('span', { class: 'span' + (s.error ? ' failed' : ''), css: { left: percentOf(s.offset - from), width: percentOf(s.duration) } })),
    h('span', { class: 'num' }, seconds(s.duration)),
    h('span', { class: 'num', 'data-testid': 'span-decided', title: s.critical ? 'For this long the trace waited for this span itself.' : null }, s.critical ? seconds(s.critical_time || 0) : null));
}

const head = () => h('li', { key: 'head' }, h('span', {}, 'span'), h('span', {}), h('span', { class: 'num' }, 'duration'), h('span', { class: 'num' }, 'critical'));

// waterfall describes a trace; of several, the first is open.
export function waterfall(trace, at) {
  const spans = trace.spans || [];
  const id = 'trace:' + trace.id;
  const open = !isFolded(id, at > 0);
  const all = spans.length <= few || !isFolded('spans:' + trace.id, true);
  const shown = all ? spans.slice(0, most) : shownOf(spans);
  const from = Math.min(...shown.map((s) => s.offset));
  const total = Math.max(...shown.map((s) => s.offset + s.duration - from), 1e-9);
  const left = spans.length - shown.length + (trace.dropped || 0);
  return h('div', { key: 't:' + trace.id, class: 'trace', 'data-testid': 'trace' },
    h('p', { class: 'tracehead' }, fold(id, open, trace.name || 'trace'), ' ', seconds(trace.duration), ' at ', time(trace.start, true),
      trace.error ? [' ', h('span', { class: 'badge k-failing' }, 'error')] : null, ' ', jaeger(trace.url)),
    open ? h('ol', { class: 'spans', 'aria-label': 'Spans of the trace' }, [head(), ...shown.map((s) => spanRow(s, from, total))]) : null,
    open && left > 0 ? h('p', { class: 'more' }, 'showing ' + shown.length + ' of ' + (spans.length + (trace.dropped || 0)) + ' spans ',
      all ? null : h('button', { type: 'button', class: 'small', 'data-act': 'fold', 'data-arg': 'spans:' + trace.id, 'aria-expanded': 'false' }, 'Show all')) : null);
}

// traceOf describes the trace with the id, which it asks for.
export function traceOf(id, url) {
  if (!id) return null;
  const { data, missing } = fetched('/api/v1/traces/' + encodeURIComponent(id), 30);
  if (data) return waterfall(data, 0);
  return note(missing ? ['The page no longer holds the trace ' + id + '. ', jaeger(url)] : 'Loading…');
}
