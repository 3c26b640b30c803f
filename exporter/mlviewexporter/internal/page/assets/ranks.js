// The ranks of a run: those that differ from most, then the others.
import { h, sub } from './dom.js';
import { get } from './live.js';
import { count, percent, ago, unit } from './format.js';
import { table, fold, has } from './table.js';
import { gpuTable } from './gpus.js';
import { isFolded, isOpen } from './folds.js';

const columns = [
  { id: 'rank', head: 'Rank', header: true, cell: (r) => r.rank },
  { id: 'host', head: 'Host', has: (r) => r.host, cell: (r) => r.host },
  { id: 'gpu', head: 'GPU', has: (r) => r.gpu_index !== undefined || r.gpu, cell: (r) => r.gpu_index ?? (get('gpus', r.gpu) || {}).index ?? r.gpu },
  { id: 'steps', head: 'Last step', def: 'steps', num: true, has: has('steps'), cell: (r) => [count(r.steps), r.last_step ? sub(ago(r.last_step)) : null] },
  { id: 'last_span', head: 'Last finished span', def: 'last_span', has: (r) => r.last_span, cell: (r) => [r.last_span, r.last_span_time ? sub(ago(r.last_span_time)) : null] },
  { id: 'utilization', head: 'GPU use', def: 'utilization', num: true, has: has('utilization'), cell: (r) => percent(r.utilization) },
  { id: 'power', head: 'Power', def: 'power', num: true, has: has('power'), cell: (r) => unit(r.power, 'W') },
];

// split parts the ranks that agree with most in step and last span from the
// others. Ranks that work move on between two readings, so a step of difference
// is none.
function split(ranks) {
  if (ranks.length < 3) return { differ: [], agree: ranks };
  const by = new Map();
  for (const r of ranks) {
    const like = r.last_span || '';
    by.set(like, (by.get(like) || 0) + 1);
  }
  const [most, size] = [...by].sort((a, b) => b[1] - a[1])[0];
  const top = Math.max(...ranks.map((r) => r.steps || 0));
  const behind = (r) => r.steps !== undefined && r.steps < top - 1;
  const uneven = size * 2 > ranks.length;
  const differs = (r) => behind(r) || (uneven && (r.last_span || '') !== most);
  const differ = ranks.filter(differs);
  return differ.length * 2 > ranks.length ? { differ: [], agree: ranks } : { differ, agree: ranks.filter((r) => !differs(r)) };
}

export function rankTable(detail) {
  const ranks = detail.ranks || [];
  const rows = (list) => list.map((r, i) => ({ row: { ...r, key: r.rank + '/' + (r.host || '') + '/' + i } }));
  const { differ, agree } = split(ranks);
  const id = 'ranks:' + detail.run.key;
  const folded = isFolded(id, agree.length > (differ.length ? 4 : 16));
  const same = (field) => new Set(agree.map((r) => r[field])).size === 1 && agree[0][field];
  const summary = agree.length + (differ.length ? ' others' : ' ranks') + (same('last_span') ? ': last span ' + same('last_span') : '') + (same('steps') ? ', step ' + count(same('steps')) : '');
  const groups = [];
  if (differ.length) groups.push({ key: 'differ', head: h('span', {}, differ.length === 1 ? '1 rank differs' : differ.length + ' ranks differ'), rows: rows(differ.slice(0, 64)) });
  if (agree.length) groups.push({ key: 'agree', head: differ.length || folded || agree.length > 16 ? fold(id, !folded, summary) : null, rows: folded ? [] : rows(agree.slice(0, 256)) });
  const missing = detail.missing_ranks || [];
  return [
    missing.length ? h('p', { key: 'missing', class: 'callout', 'data-testid': 'missing-ranks' }, (missing.length === 1 ? 'Rank ' : 'Ranks ') + missing.slice(0, 32).join(', ') + (missing.length > 32 ? ' and ' + (missing.length - 32) + ' more' : '') + ' sent nothing.') : null,
    groups.length ? table('ranks', 'Ranks', columns, groups, { sample: ranks, compact: true, open: isOpen('ranks'), expand: (r) => gpuTable([get('gpus', r.gpu)].filter(Boolean)) }) : null,
  ];
}
