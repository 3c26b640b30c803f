// A trace as a waterfall, with the chain that decided its end marked.
import { h, safeURL } from './dom.js';
import { seconds, time } from './format.js';
import { isFolded } from './folds.js';
import { fold } from './table.js';
import { fetched } from './fetched.js';

const most = 200;

export function jaeger(url) {
  return safeURL(url) ? h('a', { href: url, rel: 'noreferrer noopener', target: '_blank', 'data-testid': 'trace-link' }, 'Open in Jaeger') : null;
}

// waterfall describes a trace. The first decimal place of a percent is enough for
// the place of a bar.
export function waterfall(trace, at) {
  const spans = trace.spans || [];
  const total = Math.max(trace.duration, ...spans.map((s) => s.offset + s.duration), 1e-9);
  const percentOf = (v) => Math.min(100, Math.max(0, (v / total) * 100)).toFixed(1) + '%';
  const id = 'trace:' + trace.id;
  const folded = isFolded(id, at > 0);
  const critical = spans.filter((s) => s.critical).map((s) => s.name);
  return h('div', { key: 't:' + trace.id, class: 'trace', 'data-testid': 'trace' },
    h('p', { class: 'tracehead' }, fold(id, !folded, trace.name || 'trace'), ' ', seconds(trace.duration), ' at ', time(trace.start, true),
      trace.error ? h('span', { class: 'badge k-failing' }, 'error') : null, ' ', jaeger(trace.url)),
    folded ? null : h('ol', { class: 'spans', 'aria-label': 'Spans of the trace' + (critical.length ? '; the chain that decided its end: ' + critical.slice(0, 20).join(', ') : '') },
      spans.slice(0, most).map((s) => h('li', { key: s.id, class: s.critical ? 'critical' : '', 'data-testid': s.critical ? 'span-critical' : 'span', title: (s.phase || s.operation || '') + (s.service ? ' · ' + s.service : '') },
        h('span', { class: 'name', css: { 'padding-left': Math.min(s.depth, 12) * 0.7 + 'rem' } }, s.critical ? h('span', { class: 'hidden' }, 'decided: ') : null, s.name, s.error ? h('span', { class: 'error' }, ' ' + s.error) : null),
        h('span', { class: 'lane' }, h('span', { class: 'span' + (s.error ? ' failed' : ''), css: { left: percentOf(s.offset), width: percentOf(s.duration) } })),
        h('span', { class: 'num' }, seconds(s.duration))))),
    !folded && (trace.dropped || spans.length > most) ? h('p', { class: 'sub' }, (trace.dropped || 0) + Math.max(0, spans.length - most) + ' more spans are not shown.') : null);
}

// traceOf describes the trace with the id, which it asks for.
export function traceOf(id, url) {
  if (!id) return null;
  const { data, missing } = fetched('/api/v1/traces/' + encodeURIComponent(id), 30);
  if (data) return waterfall(data, 0);
  return h('p', { class: 'dim' }, missing ? ['The page no longer holds the trace ' + id + '. ', jaeger(url)] : 'Loading…');
}
