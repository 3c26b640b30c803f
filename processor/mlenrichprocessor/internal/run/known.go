package run

import (
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

// How many places and runs Trainers remembers, and how long after their last use.
const (
	maxPlaces  = 4096
	maxRuns    = 8192
	trainerAge = time.Hour
)

// places are the attributes that say where a process is, and of which each process of a
// training has one value.
var places = [...]string{mlattr.ContainerID, mlattr.K8sPodUID, mlattr.SlurmJobID}

// Trainers remembers where runs are that send telemetry of their training, so that what
// their programs print is known to be of them. It is safe for concurrent use.
type Trainers struct {
	cache.Locked[string, trainer]
	// steps has the runs that send spans of their steps.
	steps *cache.LRU[string, struct{}]
}

// trainer is the run that was at a place. several is true if there were more.
type trainer struct {
	run     Run
	several bool
}

// NewTrainers returns an empty Trainers.
func NewTrainers(now func() time.Time) *Trainers {
	return &Trainers{
		Locked: cache.NewLocked[string, trainer]("trainers", now, maxPlaces, trainerAge),
		steps:  cache.NewLRU[string, struct{}](maxRuns, trainerAge, nil),
	}
}

// See notes that a process of a run sends telemetry of its training, and whether it sends
// spans of its steps.
func (t *Trainers) See(r Run, p *Process, attrs pcommon.Map, steps bool) {
	if r.ID == "" {
		return
	}
	at := placesOf(p, attrs)
	now := t.Lock()
	defer t.Unlock()
	if steps && t.steps.Find(r.ID, now) == nil {
		t.steps.Insert(strings.Clone(r.ID), now)
	}
	for _, place := range at {
		known := t.All.Ensure(place, now)
		switch {
		case known.run.ID == "":
			known.run = Run{ID: strings.Clone(r.ID), Inferred: r.Inferred}
		case known.run.ID != r.ID:
			known.several = true
		}
	}
}

// At returns the only run that sends telemetry of its training from where a process is.
func (t *Trainers) At(p *Process, attrs pcommon.Map) (r Run, ok bool) {
	at := placesOf(p, attrs)
	now := t.Lock()
	defer t.Unlock()
	for _, place := range at {
		if known := t.All.Find(place, now); known != nil {
			return known.run, !known.several
		}
	}
	return Run{}, false
}

// SendSteps reports whether a run sends spans of its steps.
func (t *Trainers) SendSteps(run string) bool {
	now := t.Lock()
	defer t.Unlock()
	return t.steps.Find(run, now) != nil
}

// placesOf returns the places of a process, the surest first.
func placesOf(p *Process, attrs pcommon.Map) (at []string) {
	if p.PID != "" && p.Host != "" {
		at = append(at, mlattr.Digest(idLength/2, mlattr.ProcessID, p.Host, p.PID))
	}
	for _, key := range places {
		if id := mlattr.IDAt(attrs, key); id != "" {
			at = append(at, mlattr.Digest(idLength/2, key, id))
		}
	}
	return at
}

// How much Clients remembers, and how long after its last use.
const (
	maxClients = 4096
	clientAge  = time.Hour
)

// Clients remembers which clients each process was recognised as: what the
// spans of a process reveal holds for its metrics and logs. It is safe for
// concurrent use.
type Clients struct {
	cache.Locked[string, vocabulary.System]
}

// NewClients returns an empty Clients.
func NewClients(now func() time.Time) *Clients {
	return &Clients{cache.NewLocked[string, vocabulary.System]("resources", now, maxClients, clientAge)}
}

// Recognise adds the clients that the process of a key was found to be, and
// returns all that it was found to be so far.
func (c *Clients) Recognise(key string, found vocabulary.System) vocabulary.System {
	now := c.Lock()
	defer c.Unlock()
	known := c.All.Find(key, now)
	if known == nil {
		if found == 0 {
			return 0
		}
		known = c.All.Insert(key, now)
	}
	*known |= found
	return *known
}
