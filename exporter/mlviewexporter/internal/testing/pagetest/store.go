// Package pagetest has what tests of the page's packages share.
package pagetest

import (
	"cmp"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/model"
)

// NewStore returns an empty Store with the defaults of the exporter in place of zero
// values of the settings.
func NewStore(settings input.Settings) *model.Store {
	settings.Interval = cmp.Or(settings.Interval, 2*time.Second)
	settings.History = cmp.Or(settings.History, 12*time.Hour)
	settings.MaxRuns, settings.MaxGPUs = cmp.Or(settings.MaxRuns, 1000), cmp.Or(settings.MaxGPUs, 1024)
	settings.MaxTraces, settings.TraceBytes = cmp.Or(settings.MaxTraces, 200), cmp.Or(settings.TraceBytes, 64<<20)
	if settings.Reported == nil {
		settings.Reported = func() []api.Missing { return nil }
	}
	if settings.Now == nil {
		settings.Now = time.Now
	}
	return model.NewStore(settings)
}
