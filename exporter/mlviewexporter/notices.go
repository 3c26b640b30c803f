package mlviewexporter

import (
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// notices passes what the collector's components have left out to the model, when
// somebody looks at the page.
type notices struct {
	state  *shared.State
	mu     sync.Mutex
	read   time.Time
	owners []string
}

// refresh reads the notices, at most once an interval. It does not wait for another
// refresh.
func (n *notices) refresh(store *model.Store, now time.Time, interval time.Duration) {
	if !n.mu.TryLock() {
		return
	}
	defer n.mu.Unlock()
	if now.Sub(n.read) < interval {
		return
	}
	n.read = now
	all := n.state.Notices()
	for _, owner := range n.owners {
		if _, still := all[owner]; !still {
			store.SetMissing(owner, nil)
		}
	}
	n.owners = n.owners[:0]
	for owner, of := range all {
		n.owners = append(n.owners, owner)
		rows := make([]api.Missing, len(of))
		for i, notice := range of {
			rows[i] = api.Missing{
				Key: owner + ":" + notice.Key, Kind: notice.Kind, What: notice.What, Why: notice.Why,
				Count: notice.Count, Fix: notice.Fix, Since: api.TimeOf(notice.Since),
			}
		}
		store.SetMissing(owner, rows)
	}
}
