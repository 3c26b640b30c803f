package withhold

import (
	"crypto/rand"
	"crypto/sha256"
	"hash/maphash"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
)

// gone stands for a value that is no text and whose key is removed.
const gone = "[removed]"

func countOf(kind string, count int, unit string) string {
	var digits [20]byte
	return "[" + kind + ": " + string(strconv.AppendInt(digits[:0], int64(count), 10)) + unit + "]"
}

// hashSize is the size of a hash in bytes. With 64 bits, a million texts
// collide with a probability of 1 in 37 million.
const hashSize = 8

// processKey is the key of those Filters that are given none. They share it, since
// one exporter may show what several of them hashed.
var processKey = sync.OnceValue(func() []byte {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // it never fails
	return key
})

// hash returns the first bytes of the keyed hash of a text, as letters from a
// to p, so that it contains no digits of a telephone number. Without the key,
// the text cannot be found by trying candidates.
func hash(key []byte, text string) string {
	var space [512]byte
	sum := sha256.Sum256(append(append(space[:0], key...), text...))
	var digest [2 * hashSize]byte
	for i, b := range sum[:hashSize] {
		digest[2*i], digest[2*i+1] = 'a'+b>>4, 'a'+b&15
	}
	return string(digest[:])
}

// isReplacement reports whether a text is a replacement that an earlier
// ml_guard wrote.
func isReplacement(text string) bool { return replacement(text) == len(text) }

// longestReplacement is longer than any replacement, in bytes.
const longestReplacement = 40

var replacements = regexp.MustCompile(`^\[(removed|text: (\d{1,19} bytes|#[a-p]{16})|bytes: \d{1,19}|list: \d{1,19} values)\]$`)

// replacement returns the length of the replacement that a text begins with, or
// 0 if there is none.
func replacement(text string) int {
	if text == "" || text[0] != '[' {
		return 0
	}
	end := strings.IndexByte(text[:min(len(text), longestReplacement)], ']') + 1
	if !replacements.MatchString(text[:end]) {
		return 0
	}
	return end
}

// knownNames remembers what the rules say of names of attributes, spans and metrics: there
// are few of them, and each comes very often. It is safe for concurrent use and takes
// at most 1.2 MiB. A name takes the place of another with the same slot.
type knownNames struct {
	seed  maphash.Seed
	slots [4096]atomic.Pointer[knownName]
}

// knownName is a name, whether it has no secret, and whether values under it are private.
type knownName struct {
	name           string
	clean, private bool
}

// maxRemembered is the length in bytes of the longest name that is remembered.
const maxRemembered = 255

func (k *knownNames) of(name string) *knownName {
	slot := &k.slots[maphash.String(k.seed, name)%uint64(len(k.slots))]
	if known := slot.Load(); known != nil && known.name == name {
		return known
	}
	_, rules := content.Redact(name)
	known := &knownName{name: name, clean: len(rules) == 0, private: content.IsPrivate(name)}
	if known.clean && len(name) <= maxRemembered {
		known.name = strings.Clone(name)
		slot.Store(known)
	}
	return known
}

// isClean reports whether a name has no secret.
func (k *knownNames) isClean(name string) bool { return k.of(name).clean }
