package mlattr

import "iter"

// Index returns rows by their keys, of two with one key the last.
func Index[T any, K comparable](rows []T, key func(*T) K) map[K]*T {
	index := make(map[K]*T, len(rows))
	for i := range rows {
		index[key(&rows[i])] = &rows[i]
	}
	return index
}

// Mapped returns what of makes of each row.
func Mapped[T, U any](rows []T, of func(T) U) []U {
	out := make([]U, len(rows))
	for i, row := range rows {
		out[i] = of(row)
	}
	return out
}

// Where returns the rows of which something is true.
func Where[T any](rows iter.Seq[T], is func(T) bool) (out []T) {
	for row := range rows {
		if is(row) {
			out = append(out, row)
		}
	}
	return out
}

// Find returns the first row of a list that is the one, or nil.
func Find[T any](rows []T, is func(*T) bool) *T {
	for i := range rows {
		if is(&rows[i]) {
			return &rows[i]
		}
	}
	return nil
}

// Put sets the value of a key in a map that may be nil yet.
func Put[K comparable, V any](all *map[K]V, key K, value V) {
	if *all == nil {
		*all = make(map[K]V)
	}
	(*all)[key] = value
}
