// The part of the page with the GPUs, by host.
import { h, sub, dim, note } from './dom.js';
import { runLink } from './states.js';
import { list, get, live, now, hidden } from './live.js';
import { view, found, filtered } from './address.js';
import { activities, kinds, word } from './words.js';
import { bytes, percent, unit, since, number, time, clock } from './format.js';
import { table, rowsOf, part, simulated, fold, has } from './table.js';
import { isFolded, isOpen } from './folds.js';

const nameOf = (holder) => (holder.service || holder.name || (holder.run_id ? 'run ' + holder.run_id : 'a program')) + (holder.rank ? ' rank ' + holder.rank : '');

// memory shows how much of a GPU's memory each workload holds.
function memory(gpu) {
  const total = gpu.memory_limit || gpu.memory_used;
  const parts = (gpu.holders || []).filter((x) => x.memory > 0).map((x, i) => ({ name: nameOf(x), size: x.memory, shade: 'w' + (i % 3) }));
  if (gpu.memory_unattributed > 0) parts.push({ name: 'not attributed', size: gpu.memory_unattributed, shade: 'wx' });
  if (gpu.memory_reserved > 0) parts.push({ name: 'reserved by the driver', size: gpu.memory_reserved, shade: 'wr' });
  const text = parts.map((p) => p.name + ' ' + bytes(p.size)).join(', ');
  return [total ? h('span', { class: 'bar', role: 'img', 'aria-label': 'Memory: ' + (text || bytes(gpu.memory_used) + ' used'), title: text || null },
    parts.length ? parts.map((p, i) => h('span', { key: i, class: 'seg ' + p.shade, css: { width: (p.size / total) * 100 + '%' } }))
      : h('span', { class: 'seg wx', css: { width: (gpu.memory_used / total) * 100 + '%' } })) : null,
  sub(bytes(gpu.memory_used) + (gpu.memory_limit ? ' of ' + bytes(gpu.memory_limit) : '') + (gpu.memory_unattributed > 0 ? ', ' + bytes(gpu.memory_unattributed) + ' not attributed' : ''))];
}

const lost = (gpu) => number(Number(((now() - Date.parse(gpu.idle_since)) / 3.6e6).toPrecision(2)));

function holders(gpu) {
  const rows = gpu.holders || [];
  if (rows.length === 0) return gpu.memory_unattributed > 0 ? dim('not attributed') : dim('nobody');
  return h('ul', {}, rows.map((x, i) => h('li', { key: i, title: x.join ? 'joined by ' + x.join : null },
    runLink(x.run, nameOf(x)),
    sub([x.owner && x.name !== 'user ' + x.owner ? x.owner : null, x.service && x.name !== x.service ? x.name : null, rows.length > 1 ? bytes(x.memory) : null].filter(Boolean).join(' · ')))));
}

// does says what a GPU does, or since when nobody knows.
const does = (gpu) => word(activities, gpu.activity) + (gpu.no_data_since ? ' since ' + clock(gpu.no_data_since) : '');

const columns = [
  { id: 'gpu', head: 'GPU', header: true, cell: (g) => 'GPU ' + (g.index ?? g.id), after: (g) => simulated(g) },
  { id: 'activity', head: 'Does', def: 'activity', cell: (g) => [h('span', { class: 'act a-' + activityOf(g) }, does(g)), g.no_data_since ? sub('was ' + word(activities, g.last_activity)) : null] },
  { id: 'holders', head: 'Held by', def: 'holders', cell: holders },
  { id: 'utilization', head: 'Use', def: 'utilization', num: true, has: has('utilization'), cell: (g) => percent(g.utilization) },
  { id: 'idle', head: 'Idle', def: 'idle', has: has('idle_since'), cell: (g) => [since(g.idle_since), sub(lost(g) + ' GPUh lost')], none: () => dim('no') },
  { id: 'memory', head: 'Memory', def: 'memory', has: has('memory_used'), cell: memory },
  { id: 'power', head: 'Power', def: 'power', num: true, has: has('power'), cell: (g) => [number(g.power) + ' W', g.power_limit ? sub('of ' + number(g.power_limit) + ' W') : null] },
  { id: 'temperature', head: 'Temp.', num: true, has: has('temperature'), cell: (g) => unit(g.temperature, '°C') },
  { id: 'throttle', head: 'Throttled by', def: 'throttle', has: (g) => (g.throttle || []).length > 0, cell: (g) => g.throttle.join(', '), none: () => dim('nothing') },
  { id: 'health', head: 'Health', def: 'health', has: has('health'), cell: (g) => (g.health === 'ok' ? 'ok' : h('strong', { class: 'error' }, g.health)) },
  { id: 'xid', head: 'Last error', def: 'xid', has: has('xid'), cell: (g) => ['XID ' + g.xid.code + ' ', sub(g.xid.message ? g.xid.message + ' · ' : null, time(g.xid.time))], none: () => dim('none') },
];

function matches(gpu) {
  const runs = (gpu.holders || []).map((x) => get('runs', x.run) || {});
  return (!view.kind || gpu.activity === view.kind || (view.kind === 'gpu_failed' && gpu.activity === 'failed')) &&
    (!view.owner || (gpu.holders || []).some((x) => x.owner === view.owner)) && (!view.team || runs.some((r) => r.team === view.team)) &&
    found(gpu.host, gpu.name, gpu.id, gpu.index ? 'GPU ' + gpu.index : '', gpu.host + ':' + gpu.index, word(activities, gpu.activity), (gpu.holders || []).flatMap((x) => [nameOf(x), x.name, x.owner, x.run_id]));
}

// expand describes what the row of a GPU has no room for.
const expand = (g) => h('dl', { class: 'facts' }, [['Id', g.id], ['Product', g.name], ['Part of', g.parent], ['Read from', g.source], ['Last reading', time(g.last_seen)], ['Memory, reserved', bytes(g.memory_reserved)],
  ['Joined by', [...new Set((g.holders || []).map((x) => x.join).filter(Boolean))].join(', ')], ['Runs', (g.holders || []).filter((x) => x.run).map((x, i) => [i ? ', ' : null, runLink(x.run, 'run ' + x.run_id)])],
  ['Problems', list('needs').filter((n) => (n.gpus || []).includes(g.key)).map((n, i) => [i ? ', ' : null, h('a', { href: '#needs' }, word(kinds, n.kind) + ': ' + n.subject)])]]
  .filter(([, value]) => value && value.length !== 0).map(([name, value]) => h('div', { key: name, class: 'fact' }, h('dt', {}, name), h('dd', {}, value))));

// gpuTable describes a few GPUs, such as those of a run.
export function gpuTable(gpus) {
  if (gpus.length === 0) return note('no GPU known');
  const groups = [...Map.groupBy(gpus.slice(0, 64).map((row) => ({ row })), ({ row }) => row.host)].map(([host, rows]) => {
    const id = 'run-host:' + host;
    const open = !isFolded(id, gpus.length > 8);
    return { key: host, head: hostHead(id, open, host, rows), rows: open ? rows : [] };
  });
  return [table('gpu', 'GPUs', columns, groups, { sample: gpus, expand, open: isOpen('gpu') }),
    gpus.length > 64 ? h('p', { class: 'more', key: 'more' }, 'showing 64 of ' + gpus.length) : null];
}

const activityOf = (gpu) => (Object.hasOwn(activities, gpu.activity) ? gpu.activity : 'free');

// heldBy says who holds a GPU, without ranks.
const heldBy = (gpu) => [...new Set((gpu.holders || []).map((x) => (x.service || x.name || 'a program') + (x.owner && x.name !== 'user ' + x.owner ? ' (' + x.owner + ')' : '')))].join(', ');

// most is how many GPUs of a host its line shows one by one.
const most = 16;

// alike parts the GPUs of a host by what they do for whom.
const alike = (rows) => [...Map.groupBy(rows, ({ row }) => [does(row), heldBy(row)].filter(Boolean).join(' · '))];

// hostHead says in one line what each GPU of a host does, for whom, and how much.
function hostHead(id, open, host, rows) {
  const power = rows.reduce((sum, { row }) => sum + (!row.no_data_since && row.power || 0), 0);
  return [fold(id, open, host || 'no host known'), rows.every(({ row }) => row.simulated) ? [simulated(rows[0].row), ' '] : ' ',
    dim(rows.length + (rows.length === 1 ? ' GPU' : ' GPUs') + (power ? ', ' + (power >= 1000 ? (power / 1000).toFixed(1) + ' kW' : number(power) + ' W') : '') + (rows[0].row.name ? ', ' + rows[0].row.name : '')),
    alike(rows.slice(0, most)).map(([says, same]) => h('span', { key: says, class: 'alike' },
      same.map(({ row: g }) => h('span', { key: g.key, class: 'gpu' }, h('b', { class: 'act a-' + activityOf(g) }, g.index ?? '?'), g.no_data_since || g.utilization === undefined ? null : percent(g.utilization))), ' ' + says)),
    rows.length > most ? dim(' and ' + (rows.length - most) + ' more') : null];
}

// listed are the hosts that had a problem while the page was open. They stay where
// they are.
const listed = new Set();

export function gpusPart() {
  const all = list('gpus');
  if (all.length === 0) return part('gpus', 'GPUs', '', null, note('No GPU known. Data gaps says why, if the collector reads GPUs on a host.'));
  const rows = all.filter(matches);
  const shown = rowsOf('gpus', rows, { every: true });
  const unfolded = rows.length <= 16;
  const hosts = [...Map.groupBy(shown.rows, ({ row }) => row.host)];
  for (const [host, entries] of hosts) if (entries.some(({ row }) => row.activity !== 'working' && row.activity !== 'free')) listed.add(host);
  const foldFine = !filtered() && hosts.length > 16;
  const others = foldFine ? hosts.filter(([host]) => !listed.has(host)) : [];
  const showOthers = !isFolded('hosts', true);
  const heads = hosts.filter(([host]) => !foldFine || showOthers || listed.has(host)).slice(0, 64);
  const groups = heads.map(([host, entries]) => {
    const id = 'host:' + host;
    const open = !isFolded(id, !unfolded);
    return { key: host, head: hostHead(id, open, host, entries), rows: open ? entries : [] };
  });
  if (others.length) {
    const count = others.reduce((sum, [, entries]) => sum + entries.length, 0);
    groups.push({ key: '', head: [fold('hosts', showOthers, others.length + (others.length === 1 ? ' host' : ' hosts') + ' without a problem'), dim(' ' + count + ' GPUs')], rows: [] });
  }
  const without = (!filtered() && live.collector.hosts_without_gpu) || [];
  const counts = '(' + (filtered() ? rows.length + ' of ' : '') + all.length + ' on ' + hosts.length + (hosts.length === 1 ? ' host)' : ' hosts)') + (hidden('gpus') ? ' · ' + hidden('gpus') + ' more beyond the limit of the page' : '');
  const content = rows.length ? table('gpus', 'GPUs by host', columns, groups, { sample: rows, expand, open: isOpen('gpus') }) : note('No GPU matches the filters.');
  return part('gpus', 'GPUs', counts, shown.controls, content, heads.length === 64 && hosts.length > 64 ? h('p', { class: 'more', key: 'more', 'data-testid': 'showing-gpus' }, 'showing 64 of ' + hosts.length + ' hosts: search for others') : null,
    without.length ? h('p', { class: 'more', key: 'without', 'data-testid': 'hosts-without-gpu' }, 'Hosts of which no GPU is known: ' + without.join(', ')) : null);
}
