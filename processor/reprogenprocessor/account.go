package reprogenprocessor

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/metadata"
)

// Why a failure got no artifact, beside failure.UnsafeOutput and failure.TooLargeOutput.
const (
	dropBatchLimit  = "batch_limit"
	dropQueueFull   = "queue_full"
	dropMemory      = "memory_limit"
	dropRateLimited = "rate_limited"
	dropNoSpace     = "no_space"
	dropWriteError  = "write_error"
	dropShutdown    = "shutdown"
	dropEmit        = "emit_error"
)

// account says what becomes of failures: in metrics, in notices and in the log.
type account struct {
	cfg       *Config
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	id        attribute.KeyValue       // the component's, on all metrics
	own       metric.MeasurementOption // id alone
	now       func() time.Time
	lastWarn  atomic.Int64 // in nanoseconds since 1970

	// left counts what notices publishes, by reason.
	left shared.Tally
}

func (a *account) dropped(ctx context.Context, n int, reason string) {
	if n > 0 {
		a.left.Add(reason, int64(n))
		a.telemetry.ProcessorReproGenDropped.Add(ctx, int64(n),
			metric.WithAttributes(a.id, attribute.String("reason", reason)))
	}
}

// warn logs at most once a minute: a full disk fails every write.
func (a *account) warn(message string, err error) {
	now, last := a.now().UnixNano(), a.lastWarn.Load()
	if now-last >= int64(time.Minute) && a.lastWarn.CompareAndSwap(last, now) {
		a.logger.Warn(message+"; the telemetry itself is not affected", zap.Error(err))
	}
}

// notices returns why failures have no reproduction, or one that does not run. failed
// reports whether there were any.
func (a *account) notices(failed bool) []shared.Notice {
	id := a.id.Value.AsString()
	full := shared.Notice{
		Kind: "limit", Why: "Failures wait for sibling_wait, and their number or their traces are at a limit.",
		Fix: id + ": {sibling_wait: 1s}",
	}
	why := map[string]shared.Notice{
		dropRateLimited: {
			Kind: "limit", Why: fmt.Sprintf("The budget of artifacts_per_minute (%d) is used up.", a.cfg.ArtifactsPerMinute),
			Fix: fmt.Sprintf("%s: {artifacts_per_minute: %d}", id, 2*a.cfg.ArtifactsPerMinute),
		},
		dropQueueFull: full,
		dropMemory:    full,
		dropNoSpace: {
			Kind: "disk", Why: fmt.Sprintf("The disk of directory has less than min_free_bytes (%d) free.", a.cfg.MinFreeBytes),
			Fix: "Make room on the disk of " + a.cfg.Directory,
		},
		dropWriteError: {
			Kind: "disk", Why: "The files could not be written; the log says why.", Fix: "Check the directory " + a.cfg.Directory,
		},
	}
	all := a.left.Notices(func(reason string) (shared.Notice, bool) {
		notice, ok := why[reason]
		notice.What = "Failures without a reproduction, or with an incomplete one"
		return notice, ok
	})
	if len(a.cfg.AllowedModules) == 0 && failed {
		all = append(all, shared.Notice{
			Key: "allowed_modules", Kind: "reproduction", What: "Reproductions that call recorded functions without a flag",
			Why: "allowed_modules is empty, so each script asks at a terminal, and needs --allow-module elsewhere.",
			Fix: id + ": {allowed_modules: [<module>]}",
		})
	}
	if !a.cfg.CaptureContent {
		all = append(all, shared.Notice{
			Key: "capture_content", Kind: "content", What: "Arguments, messages and stack traces in reproductions",
			Why: "capture_content is false.", Fix: id + ": {capture_content: true}",
		})
	}
	return all
}
