// The filters, which are in the page's address so that a view can be sent to
// somebody.

const names = ['q', 'owner', 'team', 'kind', 'run', 'range', 'model', 'tool', 'error'];

export const view = {};

function read() {
  const params = new URLSearchParams(location.search);
  for (const name of names) view[name] = params.get(name) || '';
}
read();

// go changes filters and the address.
export function go(change) {
  Object.assign(view, change);
  const params = new URLSearchParams();
  for (const name of names) if (view[name]) params.set(name, view[name]);
  const query = params.toString();
  history.replaceState(null, '', location.pathname + (query ? '?' + query : '') + location.hash);
}

// filtered reports whether rows are hidden by a filter.
export const filtered = () => Boolean(view.q || view.owner || view.team || view.kind);

// signature changes when other rows are asked for.
export const signature = () => JSON.stringify([view.q, view.owner, view.team, view.kind, view.model, view.tool, view.error]);

// found reports whether the texts have all words of the search.
export function found(...texts) {
  if (!view.q) return true;
  const text = texts.flat().filter(Boolean).join(' ').toLowerCase();
  return view.q.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

// whose reports whether a row is of the owner and the team that the filters name.
export const whose = (row) => (!view.owner || row.owner === view.owner) && (!view.team || row.team === view.team);
