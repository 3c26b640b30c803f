package content

import (
	"hash/maphash"
	"strings"
	"sync/atomic"

	"github.com/otelcol-ml/otelcol-ml/internal/secret"
)

// cleanNames remembers names of attributes, spans and metrics that have no secret: there
// are few of them, and each comes very often. It is safe for concurrent use and takes at
// most 1 MiB. A name takes the place of another with the same slot.
type cleanNames struct {
	seed  maphash.Seed
	slots [4096]atomic.Pointer[string]
}

// maxRemembered is the length in bytes of the longest name that is remembered.
const maxRemembered = 255

// has reports whether a name has no secret.
func (c *cleanNames) has(name string) bool {
	slot := &c.slots[maphash.String(c.seed, name)%uint64(len(c.slots))]
	if known := slot.Load(); known != nil && *known == name {
		return true
	}
	if _, rules := secret.Redact(name); len(rules) > 0 {
		return false
	}
	if len(name) <= maxRemembered {
		kept := strings.Clone(name)
		slot.Store(&kept)
	}
	return true
}
