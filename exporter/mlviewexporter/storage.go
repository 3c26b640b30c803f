package mlviewexporter

import (
	"context"
	"maps"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/exporter"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

// storageFailures say what a failed operation of the storage extension means.
var storageFailures = map[string]string{
	saved.Read:   "The state of the page could not be read from the storage. The page reads it again in a minute.",
	saved.Decode: "The state of the page in the storage is damaged, or a newer version wrote it. It is kept there as state.backup, and the page begins empty.",
	saved.Encode: "The state of the page could not be saved.",
	saved.Write:  "The state of the page could not be saved. The page saves it again in a minute.",
}

// persisted keeps the state of the page over restarts, and knows what the collector's
// components tell each other.
type persisted struct {
	set       exporter.Settings
	cfg       *Config
	telemetry *telemetry

	saved *saved.State
	// collector is what the collector's components tell each other.
	collector *shared.State
	// withdraw ends the publication of the page's own notices.
	withdraw func()
}

// openState loads what was kept, if anything is.
func (s *persisted) openState(ctx context.Context, host component.Host, store *model.Store) (err error) {
	place := saved.Place{Kind: component.KindExporter, Owner: s.set.ID, Storage: s.cfg.Storage, Directory: s.cfg.StateDirectory}
	if s.saved, err = place.Load(ctx, host, "", store, s.storageFailed); err != nil {
		return err
	}
	s.collector = shared.StateOf(host)
	s.withdraw = s.collector.PublishNotices(s.set.ID.String(), s.ownNotices)
	return nil
}

// storageFailed reports a failed operation of the storage.
func (s *persisted) storageFailed(ctx context.Context, operation string, err error, again bool) {
	s.telemetry.builder.ExporterMlViewStorageErrors.Add(ctx, 1, s.telemetry.with("operation", operation))
	if !again {
		s.set.Logger.Warn(storageFailures[operation], zap.Error(err))
	}
}

// ownNotices say what a restart loses, and why.
func (s *persisted) ownNotices() []shared.Notice {
	lost := shared.Notice{
		Key: "state", Kind: "storage", What: "Runs and curves after a restart",
		Why: "Nothing keeps them.", Fix: s.set.ID.String() + ": {state_directory: <directory>}",
	}
	if s.saved != nil {
		err := s.saved.Err()
		if err == nil {
			return nil
		}
		lost.Why = "They are not kept: " + err.Error() + "."
	}
	return []shared.Notice{lost}
}

// reported returns what the collector's components have left out, by component.
func (s *persisted) reported() (rows []api.Missing) {
	all := s.collector.Notices()
	for _, owner := range slices.Sorted(maps.Keys(all)) {
		for _, notice := range all[owner] {
			rows = append(rows, api.Missing{
				Key: owner + ":" + notice.Key, Kind: notice.Kind, What: notice.What, Why: notice.Why,
				Count: notice.Count, Fix: notice.Fix, Since: api.TimeOf(notice.Since),
			})
		}
	}
	return rows
}
