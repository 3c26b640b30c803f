package mlattr

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// Digest returns the first bytes of a hash of texts in hexadecimal digits: the same in every
// collector and after a restart.
func Digest(bytes int, texts ...string) string {
	var space [256]byte
	all := space[:0]
	for _, text := range texts {
		// The length keeps "a", "bc" apart from "ab", "c".
		all = append(strconv.AppendInt(all, int64(len(text)), 10), ':')
		all = append(all, text...)
	}
	sum := sha256.Sum256(all)
	var digits [2 * sha256.Size]byte
	return string(hex.AppendEncode(digits[:0], sum[:bytes]))
}
