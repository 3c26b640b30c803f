// The part of the page that says what it cannot show, and what changes that; and
// what changed.
import { h } from './dom.js';
import { list, get } from './live.js';
import { found, filtered } from './address.js';
import { count, time, ago } from './format.js';
import { table, rowsOf, part, copyable, fold, simulated } from './table.js';
import { isFolded } from './folds.js';

const columns = [
  { id: 'what', head: 'What is missing', header: true, cell: (m) => m.what },
  { id: 'why', head: 'Why', cell: (m) => m.why },
  { id: 'count', head: 'How many', num: true, has: (m) => m.count > 0, cell: (m) => count(m.count) },
  { id: 'fix', head: 'What changes it', has: (m) => m.fix, cell: (m) => copyable(m.fix, 'what changes it') },
];

export const missingTable = (rows) => table('missing', 'What is missing', columns, [{ rows }]);

export function missingPart() {
  const rows = list('missing');
  const shown = rowsOf('missing', rows);
  if (rows.length === 0) return part('missing', 'What is missing and why', '', null, h('p', { class: 'dim' }, 'Nothing that the page knows of.'));
  return part('missing', 'What is missing and why', '(' + rows.length + ')', shown.controls, missingTable(shown.rows), shown.footer);
}

const changeColumns = [
  { id: 'text', head: 'Change', header: true, cell: (c) => c.text, after: (c) => simulated(c) },
  { id: 'time', head: 'First seen', cell: (c) => [time(c.time), h('span', { class: 'sub' }, ago(c.time))] },
  { id: 'service', head: 'Service · run', has: (c) => c.service || c.run_id, cell: (c) => [c.service, c.run_id ? h('span', { class: 'sub id' }, get('runs', c.run) ? h('a', { href: '?run=' + encodeURIComponent(c.run), 'data-act': 'run', 'data-arg': c.run }, 'run ' + c.run_id) : 'run ' + c.run_id) : null] },
];

export function changesPart() {
  const all = list('changes');
  if (all.length === 0) return null;
  const rows = all.filter((c) => found(c.text, c.service, c.run_id, c.kind));
  const shown = rowsOf('changes', rows, { newest: true });
  const open = !isFolded('changes', !filtered() && all.length > 8);
  return part('changes', 'Changes', '(' + (filtered() ? rows.length + ' of ' : '') + all.length + ')', rows.length ? [shown.controls, fold('changes', open, open ? 'Fold' : 'Show')] : null,
    rows.length === 0 ? h('p', { class: 'dim' }, 'No change matches the filters.') : null, open && shown.rows.length ? [table('changes', 'What was first seen', changeColumns, [{ rows: shown.rows.map(({ row }) => ({ row })) }]), shown.footer] : null);
}
