// Which groups the reader has opened or folded.

const chosen = new Map();

// isFolded reports whether a group is folded; initially says so for one that the
// reader has not touched.
export const isFolded = (id, initially) => (chosen.has(id) ? chosen.get(id) : initially);

// setFolded keeps the reader's choice.
export const setFolded = (id, folded) => chosen.set(id, folded);
