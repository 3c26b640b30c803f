package mlattr

import "context"

type concludedKey struct{}

// WithConcluded marks the context of log records that ml_metrics of this collector
// has written. No client can do so. A queue or a batch processor on the way loses
// the mark.
func WithConcluded(ctx context.Context) context.Context {
	return context.WithValue(ctx, concludedKey{}, true)
}

// IsConcluded reports whether WithConcluded has marked a context.
func IsConcluded(ctx context.Context) bool {
	return ctx.Value(concludedKey{}) != nil
}
