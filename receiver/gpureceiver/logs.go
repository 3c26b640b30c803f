package gpureceiver

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

const (
	// maxQueued bounds the events that wait for the pipeline. They come one
	// by one, or in a storm of which the first tell enough.
	maxQueued = 1024
	// retryInterval is how long an event waits that the pipeline could not
	// take just now.
	retryInterval = time.Second
	// lastCall is how long Shutdown lets the pipeline take what is queued.
	lastCall = 2 * time.Second
)

// gpuLogs turns the errors of GPUs into log records.
type gpuLogs struct {
	cfg      *Config
	settings receiver.Settings
	monitors *monitors
	next     consumer.Logs
	builder  *metadata.LogsBuilder
	report   *receiverhelper.ObsReport
	now      func() time.Time
	retry    time.Duration

	monitor *monitor
	release shared.Release
	deaf    func()
	queue   chan heard

	// stopping ends when the receiver is to stop, sending when it gives up
	// what is queued.
	stopping, sending context.Context
	interrupt, giveUp context.CancelFunc
	running           sync.WaitGroup
	stop              sync.Once
	stopped           chan struct{}
	result            error
}

// heard is an event with what was known when it came.
type heard struct {
	device.Event
	workload workload.Workload
}

func newLogs(cfg *Config, set receiver.Settings, all *monitors, next consumer.Logs) (*gpuLogs, error) {
	report, err := receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID: set.ID, Transport: string(cfg.Source), ReceiverCreateSettings: set,
	})
	if err != nil {
		return nil, err
	}
	l := &gpuLogs{
		cfg:      cfg,
		settings: set,
		monitors: all,
		next:     next,
		builder:  metadata.NewLogsBuilder(cfg.LogsBuilderConfig, set),
		report:   report,
		now:      time.Now,
		retry:    retryInterval,
		queue:    make(chan heard, maxQueued),
		stopped:  make(chan struct{}),
	}
	l.stopping, l.interrupt = context.WithCancel(context.Background())
	l.sending, l.giveUp = context.WithCancel(context.Background())
	return l, nil
}

// Start listens to the GPUs' errors. It does not wait for a driver. Only a
// configuration that can never work is an error.
func (l *gpuLogs) Start(ctx context.Context, host component.Host) error {
	found, release, err := l.monitors.Acquire(ctx, host, l.settings.ID, func() (*monitor, error) {
		return newMonitor(l.cfg, l.settings, func() time.Time { return l.now() })
	})
	if err != nil {
		return err
	}
	l.monitor, l.release = found, release
	l.deaf = found.Listen(l.hear)
	l.running.Go(l.watch)
	l.running.Go(l.send)
	return nil
}

// Shutdown sends what is queued, within its context and lastCall, and lets the
// source go. It is safe without Start and at a second time.
func (l *gpuLogs) Shutdown(ctx context.Context) error {
	l.stop.Do(func() {
		if l.deaf != nil {
			l.deaf()
		}
		l.interrupt()
		patience := time.AfterFunc(lastCall, l.giveUp)
		withdraw := context.AfterFunc(ctx, l.giveUp)
		go func() {
			defer close(l.stopped)
			l.running.Wait()
			patience.Stop()
			withdraw()
			l.giveUp()
			if l.release != nil {
				l.result = l.release(ctx)
			}
		}()
	})
	select {
	case <-l.stopped:
		return l.result
	case <-ctx.Done():
		return ctx.Err()
	}
}

// watch finds the GPUs again and again, because nobody else does where no
// metrics pipeline has this receiver.
func (l *gpuLogs) watch() {
	timer := time.NewTimer(l.cfg.InitialDelay)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-l.stopping.Done():
			return
		}
		l.monitor.Watch(l.stopping)
		timer.Reset(l.cfg.CollectionInterval)
	}
}

// hear queues an event. It must not block, so that an event that does not fit
// is dropped and counted.
func (l *gpuLogs) hear(event device.Event) {
	select {
	case l.queue <- heard{Event: event, workload: l.monitor.tenants.of(&event)}:
	default:
		l.monitor.droppedEvent("logs")
	}
}

// send gives the pipeline what is queued, at the end also what is left.
func (l *gpuLogs) send() {
	for {
		select {
		case event := <-l.queue:
			l.deliver(&event)
			continue
		default:
		}
		select {
		case event := <-l.queue:
			l.deliver(&event)
		case <-l.stopping.Done():
			// Nothing is queued any more: Shutdown stopped listening first.
			if len(l.queue) == 0 {
				return
			}
		}
	}
}

// deliver gives one event to the pipeline, again and again while the pipeline
// says that it could take it later. Meanwhile others wait in the queue.
func (l *gpuLogs) deliver(event *heard) {
	for {
		// A consumer may change what it gets, also where it refuses it.
		logs := l.logs(event)
		count := logs.LogRecordCount()
		if count == 0 {
			return
		}
		ctx := l.report.StartLogsOp(l.sending)
		err := l.next.ConsumeLogs(ctx, logs)
		l.report.EndLogsOp(ctx, metadata.Type.String(), count, err)
		if err == nil || consumererror.IsPermanent(err) {
			return
		}
		select {
		case <-time.After(l.retry):
		case <-l.stopping.Done():
			l.monitor.droppedEvent("logs")
			return
		}
	}
}

// logs returns the record of an event; nothing where the event is switched
// off.
func (l *gpuLogs) logs(event *heard) plog.Logs {
	at := pcommon.NewTimestampFromTime(event.Time)
	meaning := xid.Of(event.Code)
	severity := severities[meaning.Severity]
	l.builder.RecordNvidiaGpuXidEvent(context.Background(), at,
		event.GPU.ID, event.Host, int64(event.GPU.Index), codeValue(event.Code), eventAttributes(event, &meaning)...)
	about := device.Snapshot{
		Host: event.Host, DriverVersion: event.DriverVersion, CUDAVersion: event.CUDAVersion, Replayed: event.Replayed,
	}
	logs := l.builder.Emit(metadata.WithLogsResource(describe(l.builder.NewResourceBuilder(), &about, &event.GPU)))
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				record.SetObservedTimestamp(at)
				record.SetSeverityNumber(severity)
				record.SetSeverityText(strings.ToUpper(severity.String()))
				record.Body().SetStr(fmt.Sprintf("XID %d: %s", event.Code, meaning.Text))
			}
		}
	}
	return logs
}
