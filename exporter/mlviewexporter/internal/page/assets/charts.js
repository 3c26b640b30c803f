// Curves, drawn by uPlot, which index.html loads.
/* global uPlot */
import { h, dim } from './dom.js';
import { clock, ticks } from './format.js';
import { now } from './live.js';

// gap is the time in seconds without a value that interrupts a line.
const gap = 150;

// withGaps puts an empty value into each gap of a curve.
function withGaps(...lines) {
  const [times] = lines;
  return lines.map((line) => times.flatMap((time, i) => (i > 0 && time - times[i - 1] > gap ? [line === times ? (time + times[i - 1]) / 2 : null, line[i]] : [line[i]])));
}

// chart describes a curve from a time on, in Unix seconds, with marks. Its last value
// is not that of now if it is ended, or old. Of a curve of means it is a single value, and
// the band around it has the smallest and the largest ones. group are the charts that
// share a pointer.
export function chart(curve, marks, title, write, axis, from, ended, of = 'of a minute', group = 'run') {
  let start = curve.times.findIndex((t) => t >= from);
  if (start < 0) start = curve.times.length;
  const values = curve.values.slice(start);
  const newest = curve.fine || curve;
  const end = newest.times[newest.times.length - 1];
  const last = write(newest.values[newest.values.length - 1]);
  const banded = curve.low && curve.low.length === curve.times.length;
  const means = of && (banded || (curve.fine && curve.times !== curve.fine.times)) ? ', means ' + of + (banded ? ' and their range' : '') : '';
  const says = (values.length === 0 ? 'no value in this time' : ended || now() / 1000 - end > gap ? last + ' at ' + clock(end * 1000, true) : 'now ' + last) + means;
  const [lows, highs] = banded ? [curve.low.slice(start), curve.high.slice(start)] : [values, values];
  const low = lows.reduce((a, b) => Math.min(a, b), Infinity);
  const high = highs.reduce((a, b) => Math.max(a, b), -Infinity);
  const [times, line, ...band] = withGaps(curve.times.slice(start), values, ...(banded ? [lows, highs] : []));
  const label = title + ': ' + says + (values.length ? ', between ' + write(low) + ' and ' + write(high) : '');
  return h('figure', { key: curve.name, 'data-testid': 'curve-' + curve.name },
    h('figcaption', {}, h('a', { href: '#def-curve', class: 'def' }, title), dim(' ' + says)),
    h('div', { class: 'chart', role: 'img', 'aria-label': label, own: { times, values: line, band, marks, axis, group, from, to: now() / 1000 } }));
}

// pairChart describes two curves over the same axis, and where they part.
export function pairChart(key, title, run, other, write, at, mark) {
  const last = (c) => write(c.values[c.values.length - 1]);
  const says = 'this run last ' + last(run) + ', the other one ' + last(other);
  const [times, values, others] = uPlot.join([[run.times, run.values], [other.times, other.values]].map(([t, v]) => rising(t, v)));
  return h('figure', { key, 'data-testid': 'curve-' + key },
    h('figcaption', {}, h('a', { href: '#def-compare', class: 'def' }, title), h('span', { class: 'dim' }, ' ' + says)),
    h('div', { class: 'chart', role: 'img', 'aria-label': title + ': ' + says, own: { times, values, others, band: [], group: 'pair', marks: [], mark, axis: write, at, from: times[0], to: times[times.length - 1] } }),
    h('p', { class: 'legend' }, h('span', {}, h('i', { class: 'dot p-run' }), 'this run'), h('span', {}, h('i', { class: 'dot p-with' }), 'the other run'), mark === null ? null : h('span', {}, h('i', { class: 'dot m-failure' }), 'they part')));
}

// rising leaves out what is not after everything before it: steps that were taken
// again.
function rising(times, values) {
  let last = -Infinity;
  const kept = times.map((t) => t > last && ((last = t), true));
  return [times.filter((t, i) => kept[i]), values.filter((v, i) => kept[i])];
}

export const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const charts = new Map();

// drawMarks draws a line with its number for each mark.
function drawMarks(u, marks) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.lineWidth = devicePixelRatio;
  ctx.setLineDash([4 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.font = 11 * devicePixelRatio + 'px system-ui, sans-serif';
  for (const [i, mark] of marks.entries()) {
    const at = mark.time ? Date.parse(mark.time) / 1000 : mark.at;
    if (at < u.scales.x.min || at > u.scales.x.max) continue;
    const x = Math.round(u.valToPos(at, 'x', true));
    ctx.strokeStyle = color(mark.kind === 'change' ? '--change' : mark.kind === 'failure' ? '--bad' : '--warn');
    ctx.beginPath();
    ctx.moveTo(x, bbox.top);
    ctx.lineTo(x, bbox.top + bbox.height);
    ctx.stroke();
    ctx.fillStyle = ctx.strokeStyle;
    if (mark.time) ctx.fillText(i + 1, x + 3 * devicePixelRatio, bbox.top + (10 + (i % 3) * 11) * devicePixelRatio);
  }
  ctx.restore();
}

function options(el, data) {
  const axis = { stroke: color('--dim'), font: '12px system-ui, sans-serif', grid: { stroke: color('--line'), width: 1 }, ticks: { stroke: color('--line'), width: 1 } };
  return {
    width: el.clientWidth, height: el.clientHeight || 130, padding: [8, 30, 0, 0], legend: { show: false }, cursor: { sync: { key: data.group }, y: false, points: { size: 6 } },
    scales: { x: { time: !data.others, range: () => [el.mlData.from, el.mlData.to] }, y: { range: (u, min, max) => uPlot.rangeNum(min, max === min ? min + (Math.abs(min) || 1) * 0.1 : max, 0.1, true) } },
    axes: [{ ...axis, size: 26, space: 70, values: (u, at) => ticks(at, el.mlData.at || ((t) => clock(t * 1000, el.mlData.to - el.mlData.from < 600))) }, { ...axis, size: 66, space: 24, values: (u, at) => ticks(at, el.mlData.axis) }],
    series: [{}, { stroke: color('--change'), width: 1.5, spanGaps: Boolean(data.others), points: { show: data.values.length < 3 } }, ...(data.others ? [{ stroke: color('--other'), width: 1.5, dash: [6, 4], spanGaps: true, points: { show: false } }] : []), ...data.band.map(() => ({ points: { show: false } }))],
    bands: data.band.length ? [{ series: [3, 2], fill: color('--band') }] : [],
    hooks: { draw: [(u) => drawMarks(u, typeof el.mlData.mark === 'number' ? [{ kind: 'failure', at: el.mlData.mark }] : el.mlData.marks)] },
  };
}

let theme = '';

// mountCharts draws the curves of an element and frees those that have left the document.
export function mountCharts(within) {
  const scheme = color('--change');
  for (const [el, u] of charts) {
    if (el.isConnected && scheme === theme) continue;
    u.destroy();
    charts.delete(el);
  }
  theme = scheme;
  for (const el of within.querySelectorAll('.chart')) {
    const data = el.mlAttrs.own;
    el.mlData = data;
    const lines = data.others ? [data.times, data.values, data.others] : [data.times, data.values, ...data.band];
    let u = charts.get(el);
    // The ranges of a curve have other lines.
    if (u && u.series.length !== lines.length) {
      u.destroy();
      u = undefined;
    }
    if (!u) charts.set(el, new uPlot(options(el, data), lines, el));
    else {
      if (u.width !== el.clientWidth && el.clientWidth > 0) u.setSize({ width: el.clientWidth, height: el.clientHeight || 130 });
      u.setData(lines);
    }
  }
}
