// Package lastused remembers what was used last, within a bound.
//
// It is the cache of this project where any of the older entries may go. A Map has no
// list of uses, so it takes a quarter of the time of golang-lru and allocates nothing.
// That library is for what must go in an order: docs/adr/0051-one-cache.md has the figures,
// and names the four exceptions.
package lastused

import "maps"

// Map maps keys to values. It has at most limit entries, and among them at least the
// limit/2 that were used last. It is not safe for concurrent use.
type Map[K comparable, V any] struct {
	// When young has half of limit, it becomes old, and what was old and not used since
	// is dropped.
	young, old map[K]V
	half       int
}

// NewMap returns an empty Map of at most limit entries, which must be at least 2.
func NewMap[K comparable, V any](limit int) *Map[K, V] {
	return &Map[K, V]{young: make(map[K]V), old: make(map[K]V), half: limit / 2}
}

// Get returns the value of a key, and whether it has one. That is a use, and the Map may
// keep the key: its texts must not be those of a batch.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	if value, ok = m.young[key]; ok {
		return value, true
	}
	if value, ok = m.old[key]; ok {
		m.Put(key, value)
	}
	return value, ok
}

// All returns all entries.
func (m *Map[K, V]) All() map[K]V {
	all := maps.Clone(m.old)
	maps.Copy(all, m.young)
	return all
}

// Put gives a key a value. That is a use.
func (m *Map[K, V]) Put(key K, value V) {
	if len(m.young) >= m.half {
		if _, ok := m.young[key]; !ok {
			clear(m.old)
			m.young, m.old = m.old, m.young
		}
	}
	m.young[key] = value
}
