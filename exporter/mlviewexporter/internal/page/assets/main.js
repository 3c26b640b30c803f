// The page: what it shows first, the filters, and what the reader does.
import { h, patch, visible } from './dom.js';
import { live, connect, list, now } from './live.js';
import { view, go, filtered } from './address.js';
import { activities, kinds, word } from './words.js';
import { span, clock, zone, utc, time, count } from './format.js';
import { order, more, sayCopied, fit } from './table.js';
import { inTurns } from './turns.js';
import { needsPart, resolvedPart, toggleNeed } from './needs.js';
import { runsPart, toggleRun, singleOpen } from './runs.js';
import { gpusPart } from './gpus.js';
import { failuresPart } from './failures.js';
import { toggleSpan, newerTraces } from './waterfall.js';
import { modelsPart, toggleModel } from './models.js';
import { callsPart } from './calls.js';
import { missingPart, changesPart, collectorsPart } from './missing.js';
import { setFolded, toggleOpen } from './folds.js';
import { onFetched } from './fetched.js';
import { mountCharts } from './charts.js';
import { picturePart, mountMaps, order as fleetOrder, says } from './picture.js';
import { start, starting } from './start.js';
import { choose } from './compare.js';

const at = (id) => document.getElementById(id);

// oldData is after how many seconds without data the page says so.
const oldData = 90;

// awayFor is after how many milliseconds out of sight, or without input, rows may move.
const awayFor = 60000;

let touched = 0;
for (const event of ['pointermove', 'pointerdown', 'keydown', 'wheel', 'scroll']) addEventListener(event, () => (touched = performance.now()), { capture: true, passive: true });

// unused reports whether nobody seems to read the page.
const unused = () => performance.now() - touched > awayFor && !String(getSelection()) && !document.querySelector('main section:is(:hover, :focus-within), [data-act=open][aria-expanded=true]');

// unreal says which data comes from no real program or GPU.
function unreal() {
  const rows = ['runs', 'gpus', 'failures', 'calls', 'models'].flatMap(list);
  const simulated = rows.filter((row) => row.simulated && !row.recorded).length;
  const recorded = rows.filter((row) => row.recorded).length;
  return [
    h('strong', {}, simulated + recorded === rows.length ? 'All data on this page is simulated or recorded. ' : 'Not all data on this page is real. '),
    simulated || !recorded ? 'What has the tag “simulated” is not real. ' : null,
    recorded ? 'What has the tag “recorded” is played from a recording, it is not live.' : null,
  ];
}

const single = () => live.rows.runs.size === 1 && !((live.collector.hidden || {}).runs > 0);

// summary is the state of everything in one line.
function summary() {
  const c = live.collector;
  const gpus = c.gpus || {};
  const total = Object.values(gpus).reduce((a, b) => a + b, 0);
  const age = c.data_time ? (now() - Date.parse(c.data_time)) / 1000 : null;
  const needs = list('needs');
  const urgent = needs.filter((n) => n.severity === 'page').length;
  const problems = needs.length + (needs.length === 1 ? ' problem' : ' problems');
  document.title = (needs.length ? problems + ' · ' : '') + 'otelcol-ml';
  return h('div', { class: 'line' },
    h('p', { key: 'state', class: 'state' },
      needs.length ? h('strong', { class: 'error' }, problems) : starting() ? null : h('strong', { class: 'ok' }, 'No problems'),
      urgent && urgent < needs.length ? ', ' + urgent + ' of them now' : null,
      !single() && total ? h('span', { key: 'fleet', 'data-testid': 'fleet' }, ' · ', h('strong', {}, total + (total === 1 ? ' GPU' : ' GPUs')), ': ', fleetOrder.filter((a) => gpus[a] > 0).map((a) => gpus[a] + ' ' + says(a, gpus[a], c)).join(', ')) : null),
    h('p', { key: 'data', class: 'dim', 'data-testid': 'freshness' },
      c.hosts_reporting < c.hosts ? h('span', { class: 'error' }, 'hosts ' + c.hosts_reporting + '/' + c.hosts + ' · ') : null,
      age === null ? 'no data yet' : h('span', { title: utc(c.data_time) }, 'data ' + span(age) + ' old'), ', ' + clock(now(), true) + ' ' + zone()));
}

// banners say what is wrong with the page's data as a whole.
function banners() {
  const c = live.collector;
  const out = [];
  if (!live.connected && c) {
    out.push(h('p', { key: 'gone', class: 'banner bad', 'data-testid': 'banner-gone' }, h('strong', {}, 'No data since ' + clock(now(), true) + ': '), 'the page cannot reach the collector. It tries again by itself.'));
  } else if (!c) {
    out.push(h('p', { key: 'wait', class: 'banner', 'data-testid': 'banner-connecting' }, live.failed ? 'The page cannot reach the collector. It tries again by itself.' : 'Connecting to the collector…'));
  } else if (c.data_time && now() - Date.parse(c.data_time) > oldData * 1000) {
    out.push(h('p', { key: 'old', class: 'banner bad', 'data-testid': 'banner-old' }, h('strong', {}, 'No data since ' + clock(c.data_time, true) + ' (' + span((now() - Date.parse(c.data_time)) / 1000) + '): '), 'the collector runs, but nothing arrives. Check whether programs and hosts still send.'));
  }
  for (const m of c ? list('missing').filter((row) => row.since) : []) {
    out.push(h('p', { key: 'loses ' + m.key, class: 'banner bad', 'data-testid': 'banner-loses' }, h('strong', {}, m.what + ', since ', time(m.since), m.count > 0 ? ' (' + count(m.count) + ')' : null, ': '), m.why));
  }
  if (c && c.simulated) {
    out.push(h('p', { key: 'simulated', class: 'banner warn', 'data-testid': 'banner-simulated' }, unreal()));
  }
  return out;
}

const remembered = () => {
  try {
    return localStorage.getItem('owner') || '';
  } catch {
    return '';
  }
};

const distinct = (field) => [...new Set([...list('runs'), ...list('needs')].map((row) => row[field]).filter(Boolean))].sort();

function select(name, label, values, words) {
  if (values.length < 2 && !view[name]) return null;
  if (view[name] && !values.includes(view[name])) values = [...values, view[name]];
  return h('label', { key: name, for: name }, h('span', {}, label + ' '), h('select', { id: name, 'data-act-change': name, value: view[name], 'data-testid': 'filter-' + name },
    h('option', { value: '' }, 'all'), values.map((v) => h('option', { key: v, value: v }, words ? word(words, v) : v))));
}

function filters() {
  const owners = distinct('owner');
  const mine = remembered();
  if (single() && !filtered() || starting()) return null;
  const chosen = ['owner', 'team', 'kind'].filter((name) => view[name]).length;
  return [
    h('label', { key: 'q', for: 'q' }, h('span', { class: 'hidden' }, 'Search '), h('input', { id: 'q', type: 'search', value: view.q, autocomplete: 'off', spellcheck: 'false', placeholder: 'Search: run, job, host, error', 'data-testid': 'search' })),
    h('button', { key: 'filter', type: 'button', popovertarget: 'choices', 'data-testid': 'filter' }, 'Filter' + (chosen ? ' (' + chosen + ')' : '')),
    mine && owners.includes(mine) ? h('button', { key: 'mine', type: 'button', 'data-act': 'mine', 'aria-pressed': String(view.owner === mine), 'data-testid': 'mine' }, 'Mine') : null,
    filtered() ? h('button', { key: 'clear', type: 'button', 'data-act': 'clear', 'data-testid': 'clear' }, 'Clear filters') : null,
  ];
}

// choices are the filters besides the search.
function choices() {
  return [
    select('owner', 'Owner', distinct('owner')),
    view.owner && view.owner !== remembered() ? h('button', { key: 'me', type: 'button', 'data-act': 'me' }, 'This is me') : null,
    select('team', 'Team', distinct('team')),
    select('kind', 'Problem', Object.keys(kinds), { ...activities, ...kinds }),
  ];
}

// tabbed is the part whose link in the navigation the tabulator leads to.
let tabbed = 'needs';

function nav() {
  if (starting() && live.rows.gpus.size === 0) return null;
  const names = [['needs', 'Needs attention', live.rows.needs.size], ['overview', 'Last hour', live.rows.runs.size + live.rows.gpus.size + live.rows.models.size], ['runs', single() ? 'Run' : 'Runs', live.rows.runs.size], ['gpus', 'GPUs', live.rows.gpus.size], ['failures', 'Failures', live.rows.failures.size],
    ['models', 'Models', live.rows.models.size], ['calls', 'Calls', live.rows.calls.size + live.rows.pools.size], ['changes', 'Changes', live.rows.changes.size], ['missing', 'Data gaps', live.rows.missing.size]].filter(([id, , n]) => n || id === 'needs');
  if (!names.some(([id]) => id === tabbed)) tabbed = 'needs';
  return h('ul', { 'data-rove': '' }, names.map(([id, text, n]) => h('li', { key: id }, h('a', { href: '#' + id, tabindex: id === tabbed ? '0' : '-1', class: id === 'needs' && n ? 'error' : null }, text, n && id !== 'overview' && !(id === 'runs' && single()) ? h('span', { class: 'count' }, ' ' + n) : null))));
}

// drawTop draws what changes while nothing arrives.
function drawTop() {
  if (document.hidden) return;
  patch(at('banners'), banners());
  if (live.collector) patch(at('summary'), [summary()]);
}

// steps are what is drawn, from the top of the page to its end.
function steps() {
  if (!live.collector) return [drawTop];
  if (unused()) order();
  const one = single();
  // Columns without room leave, and curves are drawn, before the browser shows the part.
  const part = (id, describe) => () => {
    const el = slot(id);
    do patch(el, [describe()]);
    while (fit(el));
    mountCharts(el);
    mountMaps(el);
  };
  const begin = starting();
  return [
    drawTop,
    () => patch(at('filters'), [filters()]),
    () => patch(at('choices'), [choices()]),
    () => patch(at('parts-nav'), [nav()]),
    part('start', () => (begin ? start() : null)), part('needs', () => (begin ? null : needsPart(one))), part('overview', picturePart), part('resolved', resolvedPart), part('collectors', collectorsPart),
    part('runs', () => (begin ? null : runsPart(one))), part('gpus', () => (begin && !live.rows.gpus.size ? null : gpusPart())), part('failures', () => (begin ? null : failuresPart())), part('models', modelsPart), part('calls', callsPart), part('changes', changesPart),
    part('missing', () => (one && singleOpen() && live.rows.missing.size ? null : missingPart())),
    () => {
      at('about').textContent = 'otelcol-ml ' + (live.collector.version || '') + ' · shows what the collector has seen since ' + clock(live.collector.started);
    },
  ];
}

// slot returns the element that holds a part of the page.
function slot(id) {
  const name = 'slot-' + id;
  let el = at(name);
  if (!el) {
    el = document.createElement('div');
    el.id = name;
    at('main').append(el);
  }
  return el;
}

const draw = inTurns(steps);

function say(text) {
  at('said').textContent = text;
}

async function copy(text, button) {
  let copied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Without TLS, browsers offer the clipboard only on localhost.
    const field = document.createElement('textarea');
    field.value = text;
    field.className = 'hidden';
    document.body.append(field);
    field.select();
    copied = document.execCommand('copy');
    field.remove();
    button.focus();
  }
  sayCopied(text, copied ? 'Copied' : 'Select the text');
  say(copied ? 'Copied.' : 'The browser does not allow to copy: select the text.');
  draw();
  setTimeout(() => {
    sayCopied(null, '');
    draw();
  }, 2000);
}

function open(arg) {
  const [id, ...rest] = arg.split(' ');
  const key = rest.join(' ');
  if (id === 'needs') go({ run: toggleNeed(key) });
  else if (id === 'runs') go({ run: toggleRun(key, single()) });
  else if (id === 'span') toggleSpan(key);
  else if (id === 'models') toggleModel(key);
  else toggleOpen(id, key);
}

// clear removes all filters.
function clear(change) {
  go({ q: '', owner: '', team: '', kind: '', ...change });
  if (at('q')) at('q').value = view.q;
}

const afterDrawing = (f) => requestAnimationFrame(() => requestAnimationFrame(f));


function show(run) {
  clear({ run });
  draw();
  afterDrawing(() => {
    const detail = document.querySelector('[data-testid=run-detail]');
    if (detail) detail.closest('tr').previousSibling.querySelector('button').focus();
  });
}

const actions = {
  open, run: show,
  failures: (q) => {
    clear({ q });
    afterDrawing(() => at('h-failures').focus());
  },
  order: (id) => order(id),
  more: (id) => more(id),
  fold: (id, el) => setFolded(id, el.getAttribute('aria-expanded') === 'true'),
  kind: (kind) => go({ kind: view.kind === kind ? '' : kind }),
  mine: () => go({ owner: view.owner === remembered() ? '' : remembered() }),
  me: () => {
    try {
      localStorage.setItem('owner', view.owner);
    } catch {
      // Without storage the page forgets.
    }
  },
  clear: () => clear({}),
  range: (range) => go({ range }),
  newer: (run) => newerTraces(run),
  why: (text, el) => explain('No ' + el.dataset.term + ' known', text, el),
  copy: (text, el) => void copy(text, el),
};

// define shows the definition of a number beside its name.
function define(link) {
  const source = document.getElementById(link.getAttribute('href').slice(1));
  return Boolean(source) && explain(source.textContent, source.nextElementSibling.textContent, link);
}

// explain shows a text beside an element.
function explain(term, text, beside) {
  const box = at('definition');
  if (!box.showPopover) return false;
  at('definition-term').textContent = visible(term);
  at('definition-text').textContent = visible(text, 1000);
  box.showPopover();
  box.focus();
  const place = beside.getBoundingClientRect();
  box.style.setProperty('left', Math.max(8, Math.min(place.left, innerWidth - box.offsetWidth - 8)) + 'px');
  box.style.setProperty('top', Math.min(place.bottom + 4, innerHeight - box.offsetHeight - 8) + 'px');
  return true;
}

document.addEventListener('click', (e) => {
  const link = e.target.closest('a');
  if (link && link.classList.contains('skip')) {
    e.preventDefault();
    (document.querySelector('#needs .opener') || at('main')).focus();
    return;
  }
  if (link && link.classList.contains('def')) {
    if (define(link)) e.preventDefault();
    return;
  }
  const el = e.target.closest('[data-act]');
  if (!el) return;
  const row = el.localName === 'tr';
  if (row && (link || e.target.closest('button, code, select, input') || String(getSelection()))) return;
  if (link && (link !== el || e.ctrlKey || e.metaKey || e.shiftKey)) return;
  e.preventDefault();
  actions[el.dataset.act](el.dataset.arg, el);
  draw();
});

document.addEventListener('change', (e) => {
  const { actChange, actChoose, arg } = e.target.dataset;
  if (actChoose) choose(actChoose, arg, e.target.value);
  else if (actChange) go({ [actChange]: e.target.value });
  else return;
  draw();
});

document.addEventListener('input', (e) => {
  if (e.target.id !== 'q') return;
  go({ q: e.target.value.trim() });
  draw();
});

// Escape closes what is open: the row around the focus, else the last one of the page.
function close(e) {
  if (e.defaultPrevented || document.querySelector(':popover-open') || e.target.matches('select') || (e.target.id === 'q' && view.q)) return;
  const opened = [...document.querySelectorAll('main [data-act=open][aria-expanded=true]')];
  const boxes = (b) => [b.closest('.spanrow, tr'), b.closest('.spanrow') ? null : b.closest('tr').nextElementSibling];
  const inside = opened.filter((b) => boxes(b).some((box) => box && box.contains(e.target)));
  const button = (inside.length ? inside : opened).at(-1);
  if (!button) return;
  button.click();
  button.focus();
}

// rove moves the focus among links of which the tabulator leads to one.
function rove(e) {
  const links = [...e.target.closest('[data-rove]').querySelectorAll('a')];
  const next = links[links.indexOf(e.target) + (e.key === 'ArrowRight' ? 1 : -1)];
  if (!next) return;
  e.preventDefault();
  next.focus();
  if (next.closest('#parts-nav')) {
    tabbed = next.getAttribute('href').slice(1);
    draw();
  }
}

document.addEventListener('keydown', (e) => {
  if (e.key === 'Escape') close(e);
  else if (/^Arrow(Left|Right)$/.test(e.key) && e.target.closest && e.target.closest('[data-rove]')) rove(e);
  else if (e.key === 'ArrowUp' && e.target.matches('.opener')) {
    // The names of the columns are before the rows, but the tabulator leads to these.
    const head = e.target.closest('table').querySelector('[data-rove] a');
    if (head) head.focus();
  }
  if (e.key !== '/' || e.ctrlKey || e.metaKey || e.altKey || (document.activeElement && document.activeElement.matches('input, select, textarea')) || !at('q')) return;
  e.preventDefault();
  at('q').focus();
});

document.addEventListener('visibilitychange', draw);
addEventListener('resize', draw);
addEventListener('filtered', draw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
setInterval(drawTop, 1000);
onFetched(draw);
connect(draw);
draw();
