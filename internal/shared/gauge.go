package shared

import (
	"context"

	"go.opentelemetry.io/otel/metric"
)

// Gauge returns the callback of a metric that observes one value.
func Gauge(value func() int64, of ...metric.ObserveOption) metric.Int64Callback {
	return func(_ context.Context, o metric.Int64Observer) error {
		o.Observe(value(), of...)
		return nil
	}
}
