// Package content says which text may leave a machine: what is a secret, what is a
// name, an id or a number, and what people and programs wrote. It does not depend on
// telemetry. What is done with the rest is up to those who ask: ml_guard writes its
// length or a hash, repro_gen a mark.
//
// All functions take time linear in the length of their input; callers limit that
// length.
package content

import "strings"

// consistsOf reports whether a text has no other bytes than those of a set.
func consistsOf(text string, set *[256]bool) bool {
	for i := range len(text) {
		if !set[text[i]] {
			return false
		}
	}
	return true
}

// Words returns the words of a list as a set.
func Words(words string) map[string]bool {
	out := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		out[w] = true
	}
	return out
}
