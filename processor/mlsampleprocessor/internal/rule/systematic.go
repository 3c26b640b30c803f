package rule

import (
	"encoding/binary"

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
