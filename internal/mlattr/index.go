package mlattr

// Index returns rows by their keys, of two with one key the last.
func Index[T any, K comparable](rows []T, key func(*T) K) map[K]*T {
	index := make(map[K]*T, len(rows))
	for i := range rows {
		index[key(&rows[i])] = &rows[i]
	}
	return index
}
