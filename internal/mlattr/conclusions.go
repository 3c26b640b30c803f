package mlattr

import (
	"context"
	"strings"
)

// RunOver reports whether the program of a run in that state has come to its end.
func RunOver(state string) bool { return state == RunEnded || state == RunFailed }

type concludedKey struct{}

// WithConcluded marks the context of log records that ml_metrics of this collector
// has written. No client can do so. A queue or a batch processor on the way loses
// the mark.
func WithConcluded(ctx context.Context) context.Context {
	return context.WithValue(ctx, concludedKey{}, true)
}

// IsConcluded reports whether WithConcluded has marked a context.
func IsConcluded(ctx context.Context) bool { return ctx.Value(concludedKey{}) != nil }

// IsDerived reports whether a metric of that name is one that ml_metrics computes, also
// if it came back from Prometheus. That it arrives is no news of a host or a client.
func IsDerived(metric string) bool {
	return strings.HasPrefix(metric, "ml.") || strings.HasPrefix(metric, "ml_")
}
