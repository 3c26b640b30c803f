package gpureceiver

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/nvmlsource"
)

// driverTelemetry records the receiver's own metrics about the driver. It is
// safe for concurrent use.
type driverTelemetry struct {
	builder *metadata.TelemetryBuilder
	self    attribute.KeyValue
	plain   metric.MeasurementOption

	mu sync.RWMutex
	// durations caches options, because building a call's attributes costs
	// more than recording its duration. There is one entry for each call and
	// return code.
	durations map[callReturn][]metric.RecordOption
}

// callReturn is a call and what it returned.
type callReturn struct {
	call, status string
}

func newDriverTelemetry(builder *metadata.TelemetryBuilder, self attribute.KeyValue) *driverTelemetry {
	return &driverTelemetry{
		builder: builder, self: self,
		plain:     metric.WithAttributeSet(attribute.NewSet(self)),
		durations: make(map[callReturn][]metric.RecordOption),
	}
}

// watch observes the counts of the source's last reading.
func (d *driverTelemetry) watch(source *nvmlsource.Source) error {
	return errors.Join(
		d.builder.RegisterReceiverGpuSeenGpusCallback(func(_ context.Context, o metric.Int64Observer) error {
			o.Observe(int64(source.Tally().GPUs), d.plain)
			return nil
		}),
		d.builder.RegisterReceiverGpuUnsupportedCallsCallback(func(_ context.Context, o metric.Int64Observer) error {
			for call, gpus := range source.Tally().Unsupported {
				o.Observe(int64(gpus), metric.WithAttributes(d.self, attribute.String("nvml.call", call)))
			}
			return nil
		}))
}

// Attempted implements nvmlsource.Telemetry.
func (d *driverTelemetry) Attempted() {
	d.builder.ReceiverGpuDriverAttempts.Add(context.Background(), 1, d.plain)
}

// Opened implements nvmlsource.Telemetry.
func (d *driverTelemetry) Opened() {
	d.builder.ReceiverGpuDriverStarts.Add(context.Background(), 1, d.plain)
}

// Abandoned implements nvmlsource.Telemetry. The GPU is in the log: its id would make
// a series for each GPU.
func (d *driverTelemetry) Abandoned() {
	d.builder.ReceiverGpuAbandonedCalls.Add(context.Background(), 1, d.plain)
}

// Failed implements nvmlsource.Telemetry.
func (d *driverTelemetry) Failed(call, status string) {
	d.builder.ReceiverGpuFailedCalls.Add(context.Background(), 1, metric.WithAttributes(
		d.self, attribute.String("nvml.call", call), attribute.String("nvml.return", status)))
}

// Dropped implements nvmlsource.Telemetry.
func (d *driverTelemetry) Dropped(value string, count int64) {
	d.builder.ReceiverGpuDroppedValues.Add(context.Background(), count,
		metric.WithAttributes(d.self, attribute.String("nvml.call", value)))
}

// Called implements nvmlsource.Telemetry.
func (d *driverTelemetry) Called(call, status string, took time.Duration) {
	key := callReturn{call, status}
	d.mu.RLock()
	options, found := d.durations[key]
	d.mu.RUnlock()
	if !found {
		options = []metric.RecordOption{metric.WithAttributeSet(attribute.NewSet(
			d.self, attribute.String("nvml.call", call), attribute.String("nvml.return", status)))}
		d.mu.Lock()
		d.durations[key] = options
		d.mu.Unlock()
	}
	d.builder.ReceiverGpuCallDuration.Record(context.Background(), took.Seconds(), options...)
}
