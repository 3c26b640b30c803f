// Package links keeps which errors of links of hosts grow, and which of their file systems do
// not answer, as the gpu receiver reads them.
package links

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

const (
	// maxFaults limits the faults that are remembered, of all hosts.
	maxFaults = 32_768
	// maxHosts limits the hosts, rememberHost is for how long one is after its last reading.
	maxHosts, rememberHost = 8192, time.Hour
	// oneReading is how far apart the points of one reading of a host arrive at most.
	oneReading = 5 * time.Second
	// calm is the time without more errors after which later ones are others.
	calm = 10 * time.Minute
	// enough is how many errors of a kind that links correct count: each link has some.
	enough = 10
)

// grave are the kinds of errors of which one counts.
var grave = []string{"link_downed", "link_error_recovery", "nonfatal", "fatal", "ecc", "recovery", ""}

// What has faults.
const (
	Port   = "port"
	PCIe   = "PCIe device"
	NVLink = "NVLink of GPU"
	Mount  = "file system" // which does not answer for so many seconds, and has no kind
)

// Key identifies a fault of a host.
type Key struct {
	// What is one of the constants, ID which of them.
	What, ID string
	// Kind is the kind of its errors.
	Kind string
}

// Fault is one that grew.
type Fault struct {
	Key
	// Since is when it was first counted after a calm time, Number how often it was since.
	Since  time.Time
	Number float64

	last float64   // its newest value
	grew time.Time // when it has grown
}

type host struct {
	first, seen time.Time
	faults      map[Key]*Fault
}

// Links has the faults of hosts. The zero value is ready for use. It is not safe for concurrent
// use.
type Links struct {
	hosts  map[string]*host
	faults int
}

// Count records a counter of errors, or for how long a file system has not answered. What a host
// has counted before its first reading is not known to be new.
func (l *Links) Count(name string, key Key, number float64, now time.Time) {
	if !(number >= 0 && number < 1e18) || name == "" {
		return
	}
	h := shared.Bounded(&l.hosts, name, maxHosts, strings.Clone)
	if h == nil {
		return
	}
	if h.faults == nil {
		h.first, h.faults = now, make(map[Key]*Fault)
	}
	h.seen = now
	f := h.faults[key]
	if f == nil {
		if number == 0 || l.faults >= maxFaults {
			return // most are 0
		}
		f = &Fault{Key: Key{key.What, strings.Clone(key.ID), strings.Clone(key.Kind)}}
		h.faults[f.Key] = f
		l.faults++
		if now.Sub(h.first) < oneReading {
			f.last = number
		}
	}
	more := number - f.last
	if f.last = number; more > 0 {
		if now.Sub(f.grew) > calm {
			f.Since, f.Number = now, 0
		}
		f.grew, f.Number = now, f.Number+more
	} else if number == 0 {
		f.Number = 0 // it was reset, or answers again
	}
}

// Faults returns the faults of each host that count, in order, and forgets hosts that were not
// read for an hour.
func (l *Links) Faults(now time.Time) map[string][]Fault {
	all := make(map[string][]Fault)
	for name, h := range l.hosts {
		if now.Sub(h.seen) > rememberHost {
			l.faults -= len(h.faults)
			delete(l.hosts, name)
			continue
		}
		for _, f := range h.faults {
			if f.Number >= enough || f.Number > 0 && slices.Contains(grave, f.Kind) {
				all[name] = append(all[name], *f)
			}
		}
	}
	for _, faults := range all {
		slices.SortFunc(faults, func(a, b Fault) int {
			return cmp.Or(cmp.Compare(a.What, b.What), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Kind, b.Kind))
		})
	}
	return all
}
