// Package lru makes caches whose bound is known, so that none can fail to be made.
package lru

import "github.com/hashicorp/golang-lru/v2/simplelru"

// Cache is the library's cache.
type Cache[K comparable, V any] = simplelru.LRU[K, V]

// New returns an empty cache of size entries, at least one. gone is called with each
// entry that leaves; it may be nil.
func New[K comparable, V any](size int, gone func(K, V)) *Cache[K, V] {
	cache, err := simplelru.NewLRU(size, gone)
	if err != nil {
		panic(err)
	}
	return cache
}
