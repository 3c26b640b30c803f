// The part of the page that says what it cannot show, and what changes that; and
// what changed, and the collectors of a fleet.
import { h, sub, note } from './dom.js';
import { runLink } from './states.js';
import { list } from './live.js';
import { found, filtered } from './address.js';
import { count, time, ago } from './format.js';
import { table, rowsOf, part, copyable, fold, simulated, has } from './table.js';
import { isFolded, isOpen } from './folds.js';

// sections are where the collector's configuration has a component, by its type.
const sections = { gpu: 'receivers', ml_enrich: 'processors', ml_guard: 'processors', repro_gen: 'processors', ml_metrics: 'connectors', ml_view: 'exporters' };

// belongs says where to write what changes something.
function belongs(fix) {
  if (fix.startsWith('OTEL_')) return 'In the environment of the program.';
  const component = fix.split(/[:/]/)[0];
  return Object.hasOwn(sections, component) ? 'In the collector’s configuration file, under ' + sections[component] + '; then restart the collector.' : null;
}

const columns = [
  { id: 'what', head: 'What is missing', header: true, cell: (m) => m.what },
  { id: 'why', head: 'Why', cell: (m) => m.why },
  { id: 'count', head: 'How many', num: true, has: (m) => m.count > 0, cell: (m) => count(m.count) },
  { id: 'fix', head: 'What changes it', has: (m) => m.fix, cell: (m) => [copyable(m.fix, 'what changes it'), sub(belongs(m.fix))] },
];

export const missingTable = (rows) => table('missing', 'What is missing', columns, [{ rows }]);

export function missingPart() {
  const rows = list('missing');
  const shown = rowsOf('missing', rows);
  if (rows.length === 0) return part('missing', 'Data gaps', '', null, note('Nothing that the page knows of.'));
  return part('missing', 'Data gaps', '(' + rows.length + ')', shown.controls, missingTable(shown.rows), shown.footer);
}

// facts describes names and values that are known.
const facts = (rows) => h('dl', { class: 'facts' }, rows.filter(([, value]) => value).map(([name, value]) => h('div', { key: name, class: 'fact' }, h('dt', {}, name), h('dd', {}, value))));

const changeColumns = [
  { id: 'text', head: 'Change', header: true, cell: (c) => c.text, after: (c) => simulated(c) },
  { id: 'time', head: 'First seen', cell: (c) => [time(c.time), sub(ago(c.time))] },
  { id: 'service', head: 'Service · run', has: (c) => c.service || c.run_id, cell: (c) => [c.service, c.run_id ? h('span', { class: 'sub id' }, runLink(c.run, 'run ' + c.run_id)) : null] },
];

export function changesPart() {
  const all = list('changes');
  if (all.length === 0) return null;
  const rows = all.filter((c) => found(c.text, c.service, c.run_id, c.kind));
  const shown = rowsOf('changes', rows, { newest: true });
  const open = !isFolded('changes', !filtered() && all.length > 8);
  return part('changes', 'Changes', '(' + (filtered() ? rows.length + ' of ' : '') + all.length + ')', rows.length ? [shown.controls, fold('changes', open, open ? 'Fold' : 'Show')] : null,
    rows.length === 0 ? note('No change matches the filters.') : null, open && shown.rows.length ? [table('changes', 'What was first seen', changeColumns, [{ rows: shown.rows.map(({ row }) => ({ row })) }], { open: isOpen('changes'), expand: (c) => facts([['Kind', c.kind], ['From', c.from], ['To', c.to], ['Host', c.host], ['First seen', time(c.time)],
      ['Problems since', list('needs').filter((n) => n.service === c.service && n.since >= c.time).map((n) => n.subject + ': ' + n.kind.replaceAll('_', ' ')).join(', ')]]) }), shown.footer] : null);
}

const collectorColumns = [
  { id: 'collector', head: 'Collector', header: true, cell: (c) => c.id },
  { id: 'silent', head: 'State', cell: (c) => (c.silent_since ? h('span', { class: 'error' }, 'silent since ', time(c.silent_since)) : 'sending') },
  { id: 'address', head: 'Address', cell: (c) => c.address },
  { id: 'version', head: 'Version', has: has('version'), cell: (c) => c.version },
];

// collectorsPart is a line as long as all of them send.
export function collectorsPart() {
  const all = list('collectors');
  if (all.length === 0) return null;
  const sending = all.filter((c) => !c.silent_since).length;
  const { rows, controls, footer } = rowsOf('collectors', all, { leave: true });
  const open = !isFolded('collectors', sending === all.length);
  return part('collectors', 'Collectors', '(' + sending + ' of ' + all.length + ' sending)', [controls, fold('collectors', open, open ? 'Fold' : 'Show')], open ? [table('collectors', 'Collectors', collectorColumns, [{ rows }], { open: isOpen('collectors'), expand: (c) => facts([['First seen', time(c.first_seen)], ['Last seen', time(c.last_seen)], ['Address', c.address], ['Version', c.version]]) }), footer] : null);
}
