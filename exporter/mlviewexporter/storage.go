package mlviewexporter

import (
	"context"
	"maps"
	"slices"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
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

// openState loads what was kept, if anything is.
func (v *view) openState(ctx context.Context, host component.Host) (err error) {
	place := saved.Place{Kind: component.KindExporter, Owner: v.set.ID, Storage: v.cfg.Storage, Directory: v.cfg.StateDirectory}
	if v.saved, err = place.Load(ctx, host, "", v.Store, v.storageFailed); err != nil {
		return err
	}
	v.collector = shared.StateOf(host)
	v.withdraw = v.collector.PublishNotices(v.set.ID.String(), v.ownNotices)
	return nil
}

// storageFailed reports a failed operation of the storage.
func (v *view) storageFailed(ctx context.Context, operation string, err error, again bool) {
	v.telemetry.builder.ExporterMlViewStorageErrors.Add(ctx, 1, v.telemetry.with("operation", operation))
	if !again {
		v.set.Logger.Warn(storageFailures[operation], zap.Error(err))
	}
}

// ownNotices say what a restart loses, and why.
func (v *view) ownNotices() []shared.Notice {
	lost := shared.Notice{
		Key: "state", Kind: "storage", What: "Runs and curves after a restart",
		Why: "Nothing keeps them.", Fix: v.set.ID.String() + ": {state_directory: <directory>}",
	}
	if v.saved != nil {
		err := v.saved.Err()
		if err == nil {
			return nil
		}
		lost.Why = "They are not kept: " + err.Error() + "."
	}
	return []shared.Notice{lost}
}

// reported returns what the collector's components have left out, by component.
func (v *view) reported() (rows []api.Missing) {
	all := v.collector.Notices()
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
