package mlviewexporter

import (
	"context"

	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
)

// storageFailures say what a failed operation of the storage extension means.
var storageFailures = map[string]string{
	saved.Read:   "The state of the page could not be read from the storage. The page reads it again in a minute.",
	saved.Decode: "The state of the page in the storage is damaged, or a newer version wrote it. It is kept there as state.backup, and the page begins empty.",
	saved.Encode: "The state of the page could not be saved.",
	saved.Write:  "The state of the page could not be saved. The page saves it again in a minute.",
}

// storageFailed reports a failed operation of the storage extension.
func (v *view) storageFailed(ctx context.Context, operation string, err error) {
	v.telemetry.storageError(ctx, operation)
	v.set.Logger.Warn(storageFailures[operation], zap.Error(err))
}
