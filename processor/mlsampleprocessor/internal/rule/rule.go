// Package rule has the rules that decide about one unit at a time: which steps
// and conversations a systematic sample contains, what is slow, and what is
// rare. They know neither spans nor pdata.
package rule

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
)

// bucket is the length of the times that steps without numbers are chosen by, in
// nanoseconds. All collectors must have the same.
const bucket = int64(1e9)

// Hash returns the hash of a text. It is the same in every process and in every
// version, so that all collectors choose the same runs, steps and conversations.
func Hash(text string) uint64 { return xxhash.Sum64String(text) }

// Mix returns the hash of two hashes.
func Mix(a, b uint64) uint64 { return a ^ b*0x9e3779b97f4a7c15 }

// Step reports whether a systematic sample of one in oneIn contains a step of a
// run. Of a numbered step it is a function of run and number, so every rank and
// every collector decides the same. Of a step without a number (number is 0) it is
// a function of run and the second in which it began: of oneIn seconds one is in the
// sample, which a hash chooses anew each time, because steps may begin in every
// fifth second only. began is in nanoseconds since 1970.
func Step(run uint64, number, began int64, oneIn uint64) bool {
	if oneIn <= 1 {
		return true
	}
	if number > 0 {
		return uint64(number)%oneIn == run%oneIn // #nosec G115 -- not negative
	}
	second := uint64(max(began, 0) / bucket) // #nosec G115 -- not negative
	var key [16]byte
	binary.LittleEndian.PutUint64(key[:], run)
	binary.LittleEndian.PutUint64(key[8:], second/oneIn)
	return second%oneIn == xxhash.Sum64(key[:])%oneIn
}

// Conversation reports whether a sample of one in oneIn contains a conversation,
// by its Hash.
func Conversation(hash, oneIn uint64) bool { return oneIn <= 1 || hash%oneIn == 0 }

const (
	// remembered is how many of the newest durations a Durations compares with.
	remembered = 512
	// enoughForMedian is how many durations there must be before one is slow by
	// comparison with their median.
	enoughForMedian = 20
)

// Durations has the newest durations of units that are compared with each other.
// The zero Durations is ready to use. It is not safe for concurrent use.
type Durations struct {
	newest, sorted []float64
	next           int
}

// Slow reports whether a duration is above the quantile of those that were added, or
// above times their median. Without enough durations to say so it returns false. A
// quantile or a factor of 0 is not compared.
func (d *Durations) Slow(duration, quantile, times float64) (slow bool) {
	n := len(d.sorted)
	if quantile > 0 && float64(n)*(1-quantile) >= 1 {
		slow = duration > d.sorted[min(int(quantile*float64(n)), n-1)]
	}
	if times > 0 && n >= enoughForMedian {
		slow = slow || duration > times*d.Median()
	}
	return slow
}

// Median returns the median, or 0 without durations.
func (d *Durations) Median() float64 {
	if len(d.sorted) == 0 {
		return 0
	}
	return d.sorted[len(d.sorted)/2]
}

// Add adds a duration. It replaces the oldest if there are enough.
func (d *Durations) Add(duration float64) {
	if len(d.newest) < remembered {
		d.newest = append(d.newest, duration)
	} else {
		old, _ := slices.BinarySearch(d.sorted, d.newest[d.next])
		d.sorted = slices.Delete(d.sorted, old, old+1)
		d.newest[d.next] = duration
		d.next = (d.next + 1) % remembered
	}
	at, _ := slices.BinarySearch(d.sorted, duration)
	d.sorted = slices.Insert(d.sorted, at, duration)
}

// maxOperations limits the operations that a Rare knows.
const maxOperations = 1024

// Rare finds the first of each operation in a minute. The zero Rare is ready to
// use. It is not safe for concurrent use.
type Rare struct {
	minute int64
	seen   map[uint64]struct{}
}

// First reports whether an operation, by its Hash, is the first of its kind in
// the minute. Beyond 1024 operations a minute it reports false for new ones.
func (r *Rare) First(operation uint64, now time.Time) bool {
	if minute := now.Unix() / 60; r.seen == nil || minute != r.minute {
		r.minute, r.seen = minute, make(map[uint64]struct{})
	}
	if _, known := r.seen[operation]; known || len(r.seen) >= maxOperations {
		return false
	}
	r.seen[operation] = struct{}{}
	return true
}
