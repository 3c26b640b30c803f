package shared

import (
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// AppendBounded adds one to a list that has the oldest first. It removes the oldest of those
// that are alike if mostAlike of them are there, else the oldest of all if the list has most.
func AppendBounded[T any](all []T, one T, most, mostAlike int, alike func(T) bool) []T {
	n, first := 0, 0
	for i, other := range slices.Backward(all) {
		if alike(other) {
			n, first = n+1, i
		}
	}
	if n >= mostAlike {
		return append(slices.Delete(all, first, first+1), one)
	}
	return AppendNewest(all, one, most)
}

// AppendNewest adds one to a list that has the oldest first, of which the newest stay, at most
// so many.
func AppendNewest[T any](all []T, one T, most int) []T {
	if len(all) >= most {
		all = slices.Delete(all, 0, len(all)-most+1)
	}
	return append(all, one)
}

// Entry returns the value of a key. It makes and adds it if there is none.
func Entry[K comparable, V any](all map[K]V, key K, create func() V) V {
	value, known := all[key]
	if !known {
		value = create()
		all[key] = value
	}
	return value
}

// Bounded returns the value of a key. If there is none, it adds a zero one for a copy of the
// key, or returns nil if there are most.
func Bounded[K comparable, V any](all *map[K]*V, key K, most int, clone func(K) K) *V {
	value := (*all)[key]
	if value == nil && len(*all) < most {
		value = new(V)
		mlattr.Put(all, clone(key), value)
	}
	return value
}
