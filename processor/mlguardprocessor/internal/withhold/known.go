package withhold

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
)

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
