// Package page serves the page.
package page

import (
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

// Source is what the page shows.
type Source interface {
	State() *model.State
	Run(key string) (*model.RunDetail, bool)
	Trace(id string) (*model.Trace, bool)
	Report(fingerprint string) ([]byte, bool)
}

// Settings are the settings of a Handler.
type Settings struct {
	Interval   time.Duration
	MaxClients int
	Hosts      []string
	Now        func() time.Time
}

// Handler serves the page.
type Handler struct {
	source Source
	done   chan struct{}
	once   sync.Once
}

// NewHandler returns a Handler.
func NewHandler(source Source, _ Settings) *Handler {
	return &Handler{source: source, done: make(chan struct{})}
}

// Close ends all streams.
func (h *Handler) Close() { h.once.Do(func() { close(h.done) }) }

// ServeHTTP serves the page.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/v1/events" {
		w.Header().Set("Content-Type", "text/event-stream")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-h.done:
		case <-r.Context().Done():
		}
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(h.source.State())
}
