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

// shownOf returns the spans of a long trace to show first: its critical path if that
// is known, else the last ones.
function shownOf(spans) {
  const critical = spans.filter((s) => s.critical);
  return critical.length ? critical.slice(-few) : spans.slice(-few);
}

// openSpan is the span that is open, by the ids of its trace and of itself.
let openSpan = '';
export const toggleSpan = (key) => (openSpan = openSpan === key ? '' : key);

function spanRow(s, trace, from, total) {
  const percentOf = (v) => Math.min(100, Math.max(0, (v / total) * 100)).toFixed(1) + '%';
  const key = trace.id + '/' + s.id;
  const open = openSpan === key;
  return h('li', { key: s.id, class: (s.critical ? 'critical ' : '') + 'spanrow' + (open ? ' open' : ''), 'data-testid': s.critical ? 'span-critical' : 'span', title: [s.phase || s.operation, s.service].filter(Boolean).join(' · ') || null },
    h('button', { type: 'button', class: 'name link', 'data-act': 'open', 'data-arg': 'span ' + key, 'aria-expanded': String(open), css: { 'padding-left': Math.min(s.depth, 12) * 0.7 + 'rem' } }, s.critical ? h('span', { class: 'hidden' }, 'critical path: ') : null, s.name, s.error ? h('span', { class: 'error' }, ' ' + s.error) : null),
    h('span', { class: 'lane' }, h('span', { class: 'span' + (s.error ? ' failed' : ''), css: { left: percentOf(s.offset - from), width: percentOf(s.duration) } })),
    h('span', { class: 'num' }, seconds(s.duration)),
    h('span', { class: 'num', 'data-testid': 'span-share', title: s.critical ? 'The share of this span in the critical path: for this long the trace waited for the span itself.' : null }, s.critical ? seconds(s.critical_time || 0) : null),
    open ? spanDetail(trace, s) : null);
}

// named describes names and values; a stack trace keeps its lines.
const named = (rows) => rows.length ? h('dl', { class: 'named' }, rows.map((a, i) => h('div', { key: i + a.name }, h('dt', {}, a.name), h('dd', {}, a.name === 'exception.stacktrace' ? h('pre', { tabindex: '0', role: 'group', 'aria-label': 'Stack trace', 'data-testid': 'stack' }, a.value) : a.value)))) : null;

// spanDetail describes an open span: what it is, its attributes and its events.
function spanDetail(trace, s) {
  const { data, missing } = fetched('/api/v1/traces/' + encodeURIComponent(trace.id) + '/spans/' + encodeURIComponent(s.id), 60);
  const facts = [['service', s.service], ['operation', s.operation], ['phase', s.phase], ['starts after', seconds(s.offset)], ['duration', seconds(s.duration)], ['error', s.error], ['span', s.id]];
  return h('div', { key: 'detail', class: 'spandetail', 'data-testid': 'span-detail' }, named(facts.filter(([, value]) => value).map(([name, value]) => ({ name, value }))),
    !data ? note(missing ? 'The page no longer holds the attributes of the span.' : 'Loading…') : [
      h('h4', { key: 'ha' }, data.attributes.length ? 'Attributes' : 'No attributes'), named(data.attributes),
      data.events.map((e, i) => h('div', { key: 'e' + i }, h('h4', {}, e.name || 'event', h('span', { class: 'dim' }, ' after ' + seconds(Math.max(0, e.offset)))), named(e.attributes))),
      JSON.stringify(data).includes(' bytes]') ? note('[n bytes] is text that may be content: it is not held. ml_view: {content: true} holds it.') : null]);
}

// stepOf returns a round length of which a few fit into the total.
function stepOf(total) {
  const size = 10 ** Math.floor(Math.log10(total / 4));
  return [1, 2, 5, 10].map((n) => n * size).find((step) => total / step <= 6);
}

// head has the time axis.
const head = (from, total, step) => h('li', { key: 'head', 'aria-hidden': 'true' }, h('span', {}, 'span'),
  h('span', { class: 'lane axis' }, Array.from({ length: Math.floor((0.93 * total) / step) + 1 }, (_, i) => h('span', { key: i, class: 'tick', css: { left: ((i * step) / total) * 100 + '%' } }, seconds(Number((from + i * step).toPrecision(4)))))),
  h('span', { class: 'num' }, 'duration'), h('span', { class: 'num' }, 'share'));

// kept are the traces that each run showed first: they do not leave while they are read.
const kept = new Map();
export const newerTraces = (run) => kept.delete(run);

// lastTraces describes the traces of a run, and a button for newer ones.
export function lastTraces(run, traces) {
  const shown = kept.get(run) || traces;
  kept.delete(run);
  kept.set(run, shown);
  if (kept.size > 20) kept.delete(kept.keys().next().value);
  const newer = traces.filter((t) => !shown.some((s) => s.id === t.id)).length;
  return [h('p', { key: 'legend', class: 'legend' }, h('span', {}, h('i', { class: 'dot critical' }), 'critical path'), h('span', {}, h('i', { class: 'dot plain' }), 'other spans'),
    newer ? h('button', { key: 'newer', type: 'button', class: 'small', 'data-act': 'newer', 'data-arg': run }, 'Newer traces') : null),
  shown.map((t, i) => waterfall(traces.find((n) => n.id === t.id) || t, i))];
}

// waterfall describes a trace; of several, the first is open.
export function waterfall(trace, at) {
  const spans = trace.spans || [];
  const id = 'trace:' + trace.id;
  const open = !isFolded(id, at > 0);
  const all = spans.length <= few || !isFolded('spans:' + trace.id, true);
  const shown = all ? spans.slice(0, most) : shownOf(spans);
  const from = Math.min(...shown.map((s) => s.offset));
  const total = Math.max(...shown.map((s) => s.offset + s.duration - from), 1e-9);
  const step = stepOf(total);
  const left = spans.length - shown.length + (trace.dropped || 0);
  return h('div', { key: 't:' + trace.id, class: 'trace', 'data-testid': 'trace' },
    h('p', { class: 'tracehead' }, fold(id, open, trace.name || 'trace'), ' ', seconds(trace.duration), ' at ', time(trace.start, true),
      trace.error ? [' ', h('span', { class: 'badge k-failing' }, 'error')] : null, ' ', jaeger(trace.url)),
    open ? h('ol', { class: 'spans', 'aria-label': 'Spans of the trace', css: { '--tick': (step / total) * 100 + '%' } }, [head(from, total, step), ...shown.map((s) => spanRow(s, trace, from, total))]) : null,
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
