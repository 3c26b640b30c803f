// The part of the page with a picture of the last hour: what each GPU did, tokens and cost.
import { h, note, visible } from './dom.js';
import { live, list, now } from './live.js';
import { view, go } from './address.js';
import { activities, word } from './words.js';
import { clock, percent, number, rate, ticks } from './format.js';
import { part, head, copyable } from './table.js';
import { fetched } from './fetched.js';
import { chart, color } from './charts.js';

// order is that in which activities are listed, the worst first.
export const order = ['looks_hung', 'failed', 'slow', 'held_idle', 'working', 'free', 'no_data'];

// patterns are strokes over a cell of 6 by 6, by which states differ without color.
const patterns = { looks_hung: [[0, 6, 6, 0]], failed: [[0, 6, 6, 0], [0, 0, 6, 6]], slow: [[0, 3, 6, 3]], held_idle: [[3, 0, 3, 6]], no_data: [[0, 0, 6, 6]] };

// short reports whether the last ten minutes are shown instead of the last hour.
const short = () => (view.range ? view.range === '600' : now() - Date.parse(live.collector.started) < 600000);

const ranges = () => [['600', '10 min', short()], ['3600', '1 h', !short()]].map(([value, text, on]) =>
  h('button', { key: value, type: 'button', class: 'small', 'data-act': 'range', 'data-arg': value, 'aria-pressed': String(on) }, text));

// legend names the states with their numbers. Each one filters.
function legend(c) {
  const gpus = c.gpus || {};
  const shown = order.filter((a) => gpus[a] > 0).concat(Object.keys(gpus).filter((a) => gpus[a] > 0 && !order.includes(a)));
  return h('p', { class: 'legend', key: 'legend' }, head('GPUs', 'activity'), ': ', shown.map((a) => h('button', { key: a, type: 'button', class: 'link', 'data-act': 'kind', 'data-arg': a, 'aria-pressed': String(view.kind === a), 'data-testid': 'activity-' + a, title: 'Show only these' },
    h('i', { class: 'dot a-' + (order.includes(a) ? a : 'free') }), gpus[a] + ' ' + says(a, gpus[a], c))),
  c.hosts ? h('span', { key: 'hosts' }, head('hosts ' + c.hosts_reporting + '/' + c.hosts, 'hosts')) : null);
}

// says writes what so many GPUs do.
export const says = (a, n, c) => (a === 'no_data' && c.no_data_since ? 'without data since ' + clock(c.no_data_since) : a === 'looks_hung' && n > 1 ? 'look hung' : word(activities, a));

// costs returns the curve of what GPUs and requests cost an hour. Requests say what they
// have cost in all.
function costs(curves) {
  const [gpus, requests] = ['gpu_cost_rate', 'request_cost'].map((name) => curves.find((c) => c.name === name));
  const parts = [gpus];
  if (requests && requests.times.length > 1) {
    const values = requests.values.slice(1).map((v, i) => (Math.max(0, v - requests.values[i]) / (requests.times[i + 1] - requests.times[i])) * 3600);
    parts.push({ times: requests.times.slice(1), values });
  }
  const [one, other] = parts.filter(Boolean);
  if (!one) return [];
  const at = (c, t) => (c ? c.values[c.times.indexOf(t)] || 0 : 0);
  const times = [...new Set([...one.times, ...(other ? other.times : [])])].sort((a, b) => a - b);
  return [{ name: 'cost_rate', times, values: times.map((t) => at(one, t) + at(other, t)) }];
}

const rates = [['token_rate', 'Tokens/s, training', rate], ['model_token_rate', 'Tokens/s, models', rate], ['cost_rate', 'Cost', (v, digits) => '$' + number(v, digits) + '/h']];

// known returns the past from the first step on of which anything is known, the GPUs by
// host. It does so once for each answer.
function known(data) {
  if (!data || data.known) return data && data.known;
  const begins = data.times.findIndex((t, i) => data.gpus.some((row) => row.activity[i]) || data.curves.some((c) => c.times.includes(t)));
  const first = Math.min(begins < 0 ? data.times.length - 1 : begins, Math.max(0, data.times.length - 6));
  const inOrder = new Intl.Collator('en', { numeric: true });
  const gpus = data.gpus.map((row) => ({ ...row, activity: row.activity.slice(first), use: row.use.slice(first) })).sort((a, b) => inOrder.compare(a.host, b.host) || inOrder.compare(a.index || '', b.index || ''));
  data.known = { ...data, curves: [...data.curves, ...costs(data.curves)], times: data.times.slice(first), gpus };
  return data.known;
}

export function picturePart() {
  if (list('runs').length + list('gpus').length + list('models').length === 0) return null;
  const data = known(fetched('/api/v1/history?range=' + (short() ? 600 : 3600), short() ? 5 : 20).data);
  const curves = new Map((data ? data.curves : []).map((c) => [c.name, c]));
  const from = data ? data.times[0] : now() / 1000 - 60;
  const figures = rates.filter(([name]) => curves.has(name)).map(([name, title, write]) =>
    chart(curves.get(name), [], title, write, write, from, false, '', 'picture'));
  return part('overview', short() ? 'Last 10 minutes' : 'Last hour', '', [ranges(), h('span', { key: 'steps', class: 'dim' }, 'steps of ' + (short() ? '10 s' : 'a minute') + ': the worst state of each, the mean, and a band from minimum to maximum')],
    h('div', { key: 'both', class: 'overview' + (list('gpus').length ? '' : ' alone') },
      list('gpus').length ? h('div', { key: 'gpus' }, legend(live.collector), data ? map(data) : note('Loading…')) : null,
      h('div', { key: 'rates', class: 'rates' }, figures, !data || curves.has('cost_rate') ? null
        : h('figure', { key: 'unpriced' }, h('figcaption', {}, head('Cost', 'cost'), h('span', { class: 'dim' }, ' unknown: no price is set')), copyable('ml_metrics: {prices: {gpu_hour: {H100: 2.5}}}', 'what sets a price')))));
}

// map describes the heat map: a row a GPU or host, time to the right.
function map(data) {
  const states = new Map();
  for (const row of data.gpus) for (const a of new Set(row.activity)) if (a) states.set(a, (states.get(a) || 0) + 1);
  const hosts = data.gpus.some((row) => row.gpus > 1);
  const label = 'What ' + data.gpus.length + (hosts ? ' hosts' : ' GPUs') + ' did' + order.filter((a) => states.has(a)).map((a, i) => (i ? ', ' : ': ') + states.get(a) + ' ' + says(a, states.get(a), {})).join('') + '. The table GPUs has what they do now.';
  return [h('div', { key: 'map', class: 'heat', role: 'img', 'aria-label': label, 'data-testid': 'heat', own: data }),
    data.hidden ? h('p', { key: 'more', class: 'more' }, 'showing the ' + data.gpus.length + ' hosts with the most problems of ' + (data.gpus.length + data.hidden)) : null];
}

const gutter = 92;

// mountMaps draws the heat maps of an element.
export function mountMaps(within) {
  for (const el of within.querySelectorAll('.heat')) draw(el, el.mlAttrs.own);
}

function draw(el, data) {
  const width = el.clientWidth;
  const stamp = [width, devicePixelRatio, color('--bg'), view.kind].join();
  if (!width || (el.mlDrawn === data && el.mlStamp === stamp)) return;
  el.mlDrawn = data;
  el.mlStamp = stamp;
  const canvas = el.firstChild || el.appendChild(document.createElement('canvas'));
  const { gpus: rows, times, step } = data;
  const hosts = rows.filter((row, i) => !i || row.host !== rows[i - 1].host).length;
  const apart = hosts < rows.length ? 3 : 1;
  const high = Math.max(2, Math.min(16, Math.floor((250 - hosts * apart) / rows.length)));
  const bottom = rows.length * high + hosts * apart;
  canvas.width = width * devicePixelRatio;
  canvas.height = (bottom + 18) * devicePixelRatio;
  canvas.style.setProperty('height', bottom + 18 + 'px');
  const ctx = canvas.getContext('2d');
  ctx.scale(devicePixelRatio, devicePixelRatio);
  const first = times[0];
  const wide = (width - gutter) / times.length;
  const x = (t) => gutter + ((t - first) / step) * wide;
  const paint = paints(ctx);
  const places = [];
  let y = 0;
  let labeled = -99;
  ctx.font = '11px system-ui, sans-serif';
  ctx.textBaseline = 'middle';
  rows.forEach((row, i) => {
    if (i && row.host !== rows[i - 1].host) y += apart;
    if (!i || row.host !== rows[i - 1].host) {
      const size = rows.filter((r) => r.host === row.host).length * high;
      const middle = y + Math.max(size / 2, 6);
      if (middle - labeled >= 12) {
        ctx.fillStyle = color('--dim');
        ctx.fillText(visible(row.host, 13), 0, middle, gutter - 6);
        labeled = middle;
      }
    }
    row.activity.forEach((a, j) => a && paint(a, row.use[j], x(times[j]), y, wide, high - (high > 4 ? 1 : 0)));
    places.push([y, row]);
    y += high;
  });
  ctx.textAlign = 'center';
  const every = [60, 120, 300, 600, 900].find((s) => (wide * s) / step > 64) || 1800;
  const at = Array.from({ length: 13 }, (_, i) => (Math.ceil(first / every) + i) * every).filter((t) => t <= times[times.length - 1] + step);
  ticks(at, (t) => clock(t * 1000)).forEach((text, i) => {
    ctx.fillStyle = color('--line');
    ctx.fillRect(x(at[i]), bottom, 1, 4);
    ctx.fillStyle = color('--dim');
    ctx.fillText(text, Math.min(Math.max(x(at[i]), gutter), width - 16), bottom + 11);
  });
  const under = (e) => {
    const box = canvas.getBoundingClientRect();
    const place = places.findLast(([top]) => top <= e.clientY - box.top);
    return place && { row: place[1], i: Math.floor((e.clientX - box.left - x(times[0])) / wide) };
  };
  canvas.onpointermove = (e) => {
    const { row, i } = under(e) || {};
    if (row) canvas.title = visible(row.host) + (row.index ? ' GPU ' + row.index : row.gpus > 1 ? ', ' + row.gpus + ' GPUs' : '') + (row.activity[i] ? ' at ' + clock(times[i] * 1000, step < 60) + ': ' + word(activities, row.activity[i]) + (row.use[i] === null || row.activity[i] === 'no_data' ? '' : ', ' + percent(row.use[i])) : '');
  };
  canvas.onclick = (e) => {
    const { row } = under(e) || {};
    if (row) {
      go({ q: row.host });
      location.hash = '#gpus';
      dispatchEvent(new Event('filtered'));
    }
  };
}

// paints returns a function that paints a cell. Use makes the color of work stronger.
function paints(ctx) {
  const made = {};
  const of = (a) => {
    const lines = patterns[a];
    const tile = document.createElement('canvas');
    tile.width = tile.height = 6;
    const t = tile.getContext('2d');
    t.strokeStyle = a === 'no_data' ? color('--dim') : color('--bg');
    t.globalAlpha = 0.5;
    for (const [x1, y1, x2, y2] of lines) {
      t.beginPath();
      t.moveTo(x1, y1);
      t.lineTo(x2, y2);
      t.stroke();
    }
    return ctx.createPattern(tile, 'repeat');
  };
  return (a, use, x, y, width, high) => {
    if (!(a in made)) made[a] = { fill: color(a === 'no_data' ? '--surface' : '--' + ({ looks_hung: 'hung', held_idle: 'idle' }[a] || a)) || color('--free'), over: patterns[a] ? of(a) : null };
    ctx.globalAlpha = view.kind && view.kind !== a ? 0.25 : a === 'working' ? 0.3 + 0.7 * Math.min(1, use ?? 1) : a === 'free' ? 0.35 : 1;
    ctx.fillStyle = made[a].fill;
    ctx.fillRect(x, y, width + (a === 'working' || a === 'free' ? -0.5 : 0), high);
    if (made[a].over) {
      ctx.fillStyle = made[a].over;
      ctx.fillRect(x, y, width, high);
    }
    ctx.globalAlpha = 1;
  };
}
