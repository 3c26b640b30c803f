// Tables whose rows keep their places until somebody asks for the new order.
import { h, dim, escaped } from './dom.js';
import { now } from './live.js';
import { clock } from './format.js';
import { signature } from './address.js';

// has returns whether a row has a value in a field.
export const has = (field) => (row) => row[field] !== undefined && row[field] !== null && row[field] !== '';

const page = 50;

// places has for each table the keys in the order shown, the rows, and how many
// of them are shown.
const places = new Map();

// order shows the rows of a table, or of all, in the collector's order again.
export function order(id) {
  for (const place of id ? [places.get(id)] : places.values()) place.keys = [];
}

// more shows more rows of a table.
export function more(id) {
  const place = places.get(id);
  if (place) place.limit += page;
}

// read reports whether the reader is in the part of the page with the id.
export function read(id) {
  const part = document.getElementById(id);
  return Boolean(part) && (part.matches(':hover, :focus-within') || part.querySelector('[data-act=open][aria-expanded=true]') !== null);
}

// settle returns the rows in the order shown. Rows that are new come last; rows that
// have gone stay until somebody asks, unless they leave at once. Newest tables show
// what is new only when asked. moved reports whether the order differs from the
// collector's.
function settle(id, rows, newest, first, leave) {
  const sig = signature();
  const key = (row) => row.key;
  let place = places.get(id);
  if (!place || place.sig !== sig || place.keys.length === 0 || place.keys.length > 5000) {
    place = { sig, keys: rows.map(key), rows: new Map(), at: now(), limit: place && place.sig === sig ? place.limit : first };
    places.set(id, place);
  }
  const current = new Map(rows.map((row) => [row.key, row]));
  const added = rows.map(key).filter((k) => !place.rows.has(k) && !place.keys.includes(k));
  if (!newest) place.keys.push(...added);
  for (const [k, row] of current) if (!newest || place.keys.includes(k)) place.rows.set(k, row);
  if (leave) place.keys = place.keys.filter((k) => current.has(k));
  const shown = place.keys.filter((k) => place.rows.has(k)).map((k) => ({ row: place.rows.get(k), gone: !current.has(k) }));
  const keys = rows.map(key);
  const kept = newest ? place.keys.filter((k) => current.has(k)) : [];
  const wanted = newest ? keys.filter((k) => place.rows.has(k)) : [];
  const moved = newest ? added.length > 0 || kept.some((k, i) => k !== wanted[i]) : place.keys.length !== keys.length || place.keys.some((k, i) => k !== keys[i]);
  return { shown, moved, added: newest ? added.length : 0, at: place.at, limit: place.limit };
}

// rowsOf returns the rows to show and the controls of a list: the new order, and
// more rows. In a list with renew, what is new is shown at once while nobody reads the
// part with that id.
export function rowsOf(id, rows, { newest = false, renew = '', leave = false, total = rows.length, every = false, first = page } = {}) {
  let settled = settle(id, rows, newest, first, leave);
  if (renew && settled.added > 0 && !read(renew)) {
    order(id);
    settled = settle(id, rows, newest, first, leave);
  }
  const { shown, moved, added, at, limit } = settled;
  const cut = every ? shown : shown.slice(0, limit);
  const controls = [];
  if (moved) {
    controls.push(dim('Order of ' + clock(at, true) + (added ? ', without ' + added + ' newer ' : ' ')),
      h('button', { type: 'button', key: 'order', class: 'small', 'data-act': 'order', 'data-arg': id, 'data-testid': 'new-order-' + id }, 'Sort now'));
  }
  const footer = [];
  if (cut.length < Math.max(shown.length, total)) {
    footer.push(h('p', { class: 'more', 'data-testid': 'showing-' + id }, 'showing ' + cut.length + ' of ' + Math.max(total, shown.length) + ' ',
      shown.length > limit ? h('button', { type: 'button', class: 'small', 'data-act': 'more', 'data-arg': id }, 'Show ' + Math.min(page, shown.length - limit) + ' more') : null));
  }
  return { rows: cut, controls, footer };
}

// head describes the head of a column, which leads to the definition of its
// numbers.
export function head(text, def, tabindex = null) {
  return def ? h('a', { href: '#def-' + def, class: 'def', tabindex }, text) : text;
}

// crowded has for each table how many of its columns have left for lack of room,
// in a window of a width.
const crowded = new Map();
let room = 0;

// drawnOnce are the columns that have had a value: they do not come and go with their rows.
const drawnOnce = new Set();

// fit lets columns leave the tables of an element that are wider than their room, the
// least important first. It reports whether a table is to be drawn again.
export function fit(within) {
  let changed = false;
  for (const scroll of within.querySelectorAll('.scroll[data-leave]')) {
    let over = scroll.scrollWidth - scroll.clientWidth;
    if (over <= 0 || getComputedStyle(scroll.firstChild).display !== 'table') continue;
    let left = crowded.get(scroll.dataset.table) || 0;
    for (const id of scroll.dataset.leave.split(' ')) {
      if (over <= 0) break;
      over -= scroll.querySelector('thead .c-' + id).offsetWidth;
      left++;
      changed = true;
    }
    crowded.set(scroll.dataset.table, left);
  }
  return changed;
}

// drawnOf returns the columns for which a row has or had a value and there is room, and
// the ids of those that leave next.
function drawnOf(id, columns, rows) {
  if (innerWidth !== room) crowded.clear();
  room = innerWidth;
  const valued = columns.filter((c) => !c.has || drawnOnce.has(id + ' ' + c.id) || (rows.some((row) => c.has(row)) && drawnOnce.add(id + ' ' + c.id)));
  const leaving = valued.filter((c) => c.leaves).sort((a, b) => a.leaves - b.leaves);
  const gone = new Set(leaving.slice(0, crowded.get(id) || 0));
  return { drawn: valued.filter((c) => !gone.has(c)), leave: leaving.filter((c) => !gone.has(c)).map((c) => c.id) };
}

// table describes a table of groups of rows; a group may have a head. A column has
// a head, a cell for a row, has for whether a row has a value, and def, the name
// of its definition. Columns that no row of sample has a value for are not drawn.
// Where a window is narrow, those with leaves go, the smallest first. With rove, arrow
// keys and not the tabulator lead to the heads.
// A compact table stays a table on a small screen.
// The header column opens a row if expand describes what is then shown; open says
// which row it is.
export function table(id, caption, columns, groups, { expand, open, sample, compact, rove } = {}) {
  const rows = sample || groups.flatMap((g) => g.rows.map(({ row }) => row));
  const { drawn, leave } = drawnOf(id, columns, rows);
  const row = ({ row, gone }) => {
    const isOpen = Boolean(expand) && open !== undefined && open(row);
    const cells = drawn.map((c) => cell(c, row, gone && 'over', expand && { id, isOpen }));
    const out = [h('tr', {
      key: 'r:' + row.key, role: 'row', class: (gone ? 'gone ' : '') + (row.no_evidence_since ? 'stale ' : '') + (isOpen ? 'open ' : '') + (expand ? 'opens' : ''),
      'data-key': row.key, 'data-testid': id + '-row', 'data-kind': row.kind || row.state || row.activity || null,
      'data-act': expand ? 'open' : null, 'data-arg': expand ? id + ' ' + row.key : null,
    }, cells)];
    if (isOpen) {
      out.push(h('tr', { key: 'd:' + row.key, role: 'row', class: 'detail' },
        h('td', { role: 'cell', colspan: drawn.length, 'data-testid': id + '-detail' }, expand(row))));
    }
    return out;
  };
  return h('div', { class: 'scroll', key: 'table-' + id, 'data-table': id, 'data-leave': leave.length ? leave.join(' ') : null, tabindex: compact ? '0' : null, role: compact ? 'group' : null, 'aria-label': compact ? caption : null }, h('table', { role: 'table', class: (compact ? 'compact ' : '') + 't-' + id, 'data-testid': id + '-table', 'aria-label': caption },
    h('thead', { role: 'rowgroup', class: groups.some((g) => g.rows.length > 0) ? null : 'hidden' }, h('tr', { role: 'row', 'data-rove': rove || null }, drawn.map((c) => h('th', { key: c.id, role: 'columnheader', scope: 'col', class: (c.num ? 'num ' : '') + 'c-' + c.id }, head(c.head, c.def, rove ? '-1' : null))))),
    groups.map((g) => h('tbody', { key: 'g:' + (g.key || ''), role: 'rowgroup' },
      g.head ? h('tr', { key: 'head', role: 'row', class: 'group' }, h('th', { role: 'rowheader', scope: 'rowgroup', colspan: drawn.length }, g.head)) : null,
      g.rows.map(row)))));
}

function cell(c, row, gone, opener) {
  let value = c.has && !c.has(row) ? c.none && c.none(row) : c.cell(row);
  const empty = value === null || value === undefined || (Array.isArray(value) && value.filter(Boolean).length === 0);
  if (empty) value = h('span', { class: 'none', title: 'not sent' }, '–');
  if (c.header) {
    if (opener) {
      value = h('button', { type: 'button', class: 'opener', 'data-act': 'open', 'data-arg': opener.id + ' ' + row.key, 'aria-expanded': String(opener.isOpen) }, value);
    }
    value = [value, c.after && c.after(row), gone ? h('span', { class: 'tag' }, gone) : null];
  }
  return h(c.header ? 'th' : 'td', {
    key: c.id, role: c.header ? 'rowheader' : 'cell', scope: c.header ? 'row' : null,
    class: (c.num ? 'num ' : '') + 'c-' + c.id + (empty ? ' empty' : ''), 'data-label': c.head, 'data-testid': c.id, 'data-value': typeof row[c.id] === 'number' ? row[c.id] : null,
  }, value);
}

// fold describes a button that opens and folds a group.
export function fold(id, open, ...content) {
  return h('button', { type: 'button', class: 'opener', 'data-act': 'fold', 'data-arg': id, 'aria-expanded': String(open), 'data-testid': 'fold' }, content);
}

// copied is the text that was copied last, and what its buttons say about that.
let copied = { text: null, says: '' };

// sayCopied lets the buttons of a text say something for a moment.
export function sayCopied(text, says) {
  copied = { text, says };
}

// copyable describes text for a terminal with a button that copies it.
export function copyable(command, what) {
  const text = escaped(command, 10000);
  return h('span', { class: 'command' }, h('code', { 'data-testid': 'command' }, text),
    h('button', { type: 'button', class: 'small', 'data-act': 'copy', 'data-arg': text, 'data-testid': 'copy', 'aria-label': (copied.text === text ? copied.says : 'Copy') + ' ' + (what || 'the command') }, copied.text === text ? copied.says : 'Copy'));
}

// part describes a part of the page with its heading.
export function part(id, title, counts, controls, ...content) {
  return h('section', { key: id, id, 'aria-labelledby': 'h-' + id, 'data-testid': 'part-' + id },
    h('div', { class: 'head' }, h('h2', { id: 'h-' + id, tabindex: '-1' }, title, counts ? h('span', { class: 'count', 'data-testid': 'count-' + id }, ' ' + counts) : null), controls),
    ...content);
}

export const simulated = (row) => (row && row.simulated ? h('span', { class: 'tag', 'data-testid': 'simulated' }, row.recorded ? 'recorded' : 'simulated') : null);
