// Numbers with units and times, for people.
import { h, sub } from './dom.js';
import { now } from './live.js';

const known = (v) => typeof v === 'number' && Number.isFinite(v);

// number writes a count or measure with about three digits, or others: 0.41, 9,210, 88k.
export function number(v, digits = 3) {
  if (!known(v)) return null;
  const size = Math.abs(v);
  if (size >= 1e9) return trim(v / 1e9, digits) + 'G';
  if (size >= 1e6) return trim(v / 1e6, digits) + 'M';
  if (size >= 1e5) return trim(v / 1e3, digits) + 'k';
  return trim(v, digits);
}

function trim(v, digits = 3) {
  if (v === 0) return '0';
  const size = Math.abs(v);
  if (size >= 100 && digits < 4) return Math.round(v).toLocaleString('en-US');
  if (size < 0.001) return v.toExponential(digits - 2);
  return Number(v.toPrecision(digits)).toLocaleString('en-US', { maximumFractionDigits: 12 });
}

// ticks writes the numbers of an axis, with as many digits as tell them apart. What they
// do not tell apart is written once.
export function ticks(at, write) {
  const largest = at.reduce((most, v) => Math.max(most, Math.abs(v)), 0);
  const digits = at.length > 1 ? Math.min(9, Math.ceil(Math.log10(largest / (at[1] - at[0]))) + 1) : 3;
  const texts = at.map((v) => write(v, Math.max(3, digits || 3)));
  return texts.map((text, i) => (i && text === texts[i - 1] ? '' : text));
}

export const count = (v) => (known(v) ? Math.round(v).toLocaleString('en-US') : null);
export const rate = (v, digits) => (known(v) ? (Math.abs(v) >= 1e4 && Math.abs(v) < 1e5 ? trim(v / 1e3, digits) + 'k' : number(v, digits)) : null);
export const unit = (v, u, digits) => (known(v) ? number(v, digits) + ' ' + u : null);
export const percent = (v, digits) => {
  if (!known(v)) return null;
  const p = v * 100;
  return (digits ? Number(p.toPrecision(digits)) : p !== 0 && Math.abs(p) < 10 ? Number(p.toFixed(1)) : Math.round(p)) + ' %';
};

export function bytes(v, digits) {
  if (!known(v)) return null;
  for (const [name, size] of [['TiB', 2 ** 40], ['GiB', 2 ** 30], ['MiB', 2 ** 20], ['KiB', 2 ** 10]]) {
    if (Math.abs(v) >= size) return trim(v / size, digits) + ' ' + name;
  }
  return Math.round(v) + ' B';
}

// seconds writes a measured duration: 31 ms, 0.41 s, 2 min.
export function seconds(v) {
  if (!known(v)) return null;
  if (v === 0) return '0 s';
  if (v < 0.001) return trim(v * 1e6) + ' µs';
  if (v < 0.1) return trim(v * 1e3) + ' ms';
  return v < 120 ? trim(v) + ' s' : span(v);
}

// span writes how long something lasts: 2 s, 6 min, 3 h 12 min, 2 d 4 h.
export function span(v) {
  if (!known(v)) return null;
  v = Math.max(0, Math.round(v));
  if (v < 60) return v + ' s';
  const minutes = Math.floor(v / 60);
  if (minutes < 60) return minutes + ' min';
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return hours + ' h' + (minutes % 60 ? ' ' + (minutes % 60) + ' min' : '');
  return Math.floor(hours / 24) + ' d' + (hours % 24 ? ' ' + (hours % 24) + ' h' : '');
}

// steady writes a measure with exactly three digits, so that it does not change its
// width: 0.500, 6.00.
export const steady = (v) => (known(v) && v >= 0.001 && v < 100 ? v.toPrecision(3) : number(v));

// stepTime writes seconds per step.
export const stepTime = (v) => (known(v) ? steady(v) + ' s/step' : null);

// change writes how far a value is from its usual one: +63 %.
export function change(value, usual) {
  if (!known(value) || !known(usual) || usual <= 0) return null;
  const p = Math.round((value / usual - 1) * 100);
  return (p > 0 ? '+' : p < 0 ? '−' : '±') + Math.abs(p) + ' %';
}

export const age = (t) => (t ? span((now() - Date.parse(t)) / 1000) : null);

const two = (n) => String(n).padStart(2, '0');
const months = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

// utc writes a time with its date in UTC.
export function utc(t) {
  const d = new Date(t);
  if (Number.isNaN(d.getTime())) return '';
  return d.toISOString().replace('T', ' ').replace(/\.\d+Z$/, ' UTC');
}

// clock writes a time in the viewer's zone, with the date unless it is today.
export function clock(t, withSeconds) {
  const d = new Date(t);
  if (Number.isNaN(d.getTime())) return '';
  const today = new Date(now());
  const time = two(d.getHours()) + ':' + two(d.getMinutes()) + (withSeconds ? ':' + two(d.getSeconds()) : '');
  return d.toDateString() === today.toDateString() ? time : d.getDate() + ' ' + months[d.getMonth()] + ' ' + time;
}

// zone names the viewer's time zone, such as UTC+5:30.
export function zone() {
  const minutes = -new Date(now()).getTimezoneOffset();
  const size = Math.abs(minutes);
  return 'UTC' + (minutes < 0 ? '−' : '+') + Math.floor(size / 60) + (size % 60 ? ':' + two(size % 60) : '');
}

// time describes a moment: the viewer's time, with seconds within the last hour, and
// UTC on hover.
export function time(t, withSeconds = now() - Date.parse(t) < 3.6e6) {
  return t ? h('time', { datetime: t, title: utc(t) }, clock(t, withSeconds)) : null;
}

// ago describes how long ago a moment was, with the moment in UTC on hover.
export function ago(t) {
  return t ? h('time', { datetime: t, title: utc(t) }, age(t) + ' ago') : null;
}

// since describes a moment and how long it is ago.
export function since(t) {
  return t ? [time(t), sub('for ' + age(t))] : null;
}
