package run

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

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
