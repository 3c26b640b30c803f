// Which groups the reader has opened or folded.

const chosen = new Map();

// isFolded reports whether a group is folded; initially says so for one that the
// reader has not touched.
export const isFolded = (id, initially) => (chosen.has(id) ? chosen.get(id) : initially);

// setFolded keeps the reader's choice.
export const setFolded = (id, folded) => chosen.set(id, folded);

// opened has for each table the key of its open row.
const opened = new Map();

export const isOpen = (id) => (row) => opened.get(id) === row.key;
export const toggleOpen = (id, key) => opened.set(id, opened.get(id) === key ? '' : key);
