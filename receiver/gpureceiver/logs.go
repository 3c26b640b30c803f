package gpureceiver

import (
	"context"
	"fmt"
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
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/xid"
)

const (
	// maxQueued bounds the events that wait for the pipeline. Of a storm of
	// events the first say enough.
	maxQueued = 1024
	// retryInterval is the wait before an event is sent again that the
	// pipeline has refused for now.
	retryInterval = time.Second
	// drainTimeout is how long Shutdown waits for the pipeline to take the
	// queued events.
	drainTimeout = 2 * time.Second
)

// gpuLogs turns the errors of GPUs into log records.
type gpuLogs struct {
	signal
	next    consumer.Logs
	builder *metadata.LogsBuilder
	report  *receiverhelper.ObsReport
	retry   time.Duration
	queue   chan queuedEvent

	// stopping is closed when the receiver stops, and sending ends when it gives up the
	// queued events.
	stopping chan struct{}
	sending  context.Context
	giveUp   context.CancelFunc
	watching shared.Loop
	running  sync.WaitGroup
	stop     shared.Stop
}

// queuedEvent is an event with the workload that the GPU had at its time.
type queuedEvent struct {
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
		signal:  signal{cfg: cfg, settings: set, monitors: all, now: time.Now, unlisten: func() {}},
		next:    next,
		builder: metadata.NewLogsBuilder(cfg.LogsBuilderConfig, set),
		report:  report,
		retry:   retryInterval,
		queue:   make(chan queuedEvent, maxQueued),

		stopping: make(chan struct{}),
	}
	l.sending, l.giveUp = context.WithCancel(context.Background())
	return l, nil
}

// Start listens to the GPUs' errors. It does not wait for a driver, and fails
// only for a configuration that can never work.
func (l *gpuLogs) Start(ctx context.Context, host component.Host) error {
	if err := l.join(ctx, host, l.enqueue); err != nil {
		return err
	}
	// No scraper finds the GPUs if the receiver is in no metrics pipeline.
	l.watching.Start(l.cfg.InitialDelay, l.cfg.CollectionInterval, l.monitor.Watch)
	// Shutdown closes the queue after it has stopped listening.
	l.running.Go(func() {
		for event := range l.queue {
			l.deliver(&event)
		}
	})
	return nil
}

// Shutdown sends each queued event once, within its context and drainTimeout, and
// releases the source. It is safe without Start and to call twice.
func (l *gpuLogs) Shutdown(ctx context.Context) error {
	return l.stop.Do(ctx, func() error {
		l.unlisten()
		l.running.Go(func() { _ = l.watching.Stop(context.Background()) })
		close(l.stopping)
		close(l.queue)
		defer time.AfterFunc(drainTimeout, l.giveUp).Stop()
		defer context.AfterFunc(ctx, l.giveUp)()
		l.running.Wait()
		l.giveUp()
		return l.leave(ctx)
	})
}

// enqueue queues an event. It must not block, so that an event that does not
// fit is dropped and counted.
func (l *gpuLogs) enqueue(event device.Event) {
	select {
	case l.queue <- queuedEvent{Event: event, workload: l.monitor.tenants.of(&event)}:
	default:
		l.monitor.droppedEvent("logs")
	}
}

// deliver sends one event, and repeats it while the pipeline returns an error
// that is not permanent. Meanwhile others wait in the queue.
func (l *gpuLogs) deliver(event *queuedEvent) {
	for {
		// A consumer may change the record even if it refuses it.
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
		case <-l.stopping:
			l.monitor.droppedEvent("logs")
			return
		}
	}
}

// logs returns the record of an event, or nothing if the event is disabled.
func (l *gpuLogs) logs(event *queuedEvent) plog.Logs {
	at := pcommon.NewTimestampFromTime(event.Time)
	if of := event.Switch; of != nil {
		var a workload.Attributes[metadata.EventAttributeOption]
		a.Text(event.Text, metadata.WithNvidiaNvswitchSxidMessageEventAttribute)
		a.Number(of.Link, metadata.WithNvidiaNvswitchLinkEventAttribute)
		l.builder.RecordNvidiaNvswitchSxidEvent(context.Background(), at,
			event.Host, of.Index, of.PCIBusID, codeValue(event.Code), of.Fatal, a...)
		meaning := xid.OfSwitch(of.Fatal)
		return l.finish(describe(l.builder.NewResourceBuilder(), &event.System, nil), at, meaning.Severity, meaning.Text)
	}
	meaning, detail := xid.Explain(event.Code, event.Text)
	l.builder.RecordNvidiaGpuXidEvent(context.Background(), at,
		event.GPU.ID, event.Host, int64(event.GPU.Index), codeValue(event.Code), eventAttributes(event, &meaning, &detail)...)
	return l.finish(describe(l.builder.NewResourceBuilder(), &event.System, &event.GPU), at, meaning.Severity,
		fmt.Sprintf("XID %d: %s", event.Code, meaning.Text))
}

// finish returns the recorded event with what mdatagen's builder cannot set.
func (l *gpuLogs) finish(resource pcommon.Resource, at pcommon.Timestamp, of xid.Severity, body string) plog.Logs {
	logs := l.builder.Emit(metadata.WithLogsResource(resource))
	shared.Finish(logs, at, severities[of], body)
	return logs
}

// severities are the log severities by the XIDs' own.
var severities = map[xid.Severity]plog.SeverityNumber{
	xid.Notice:  plog.SeverityNumberInfo,
	xid.Program: plog.SeverityNumberWarn,
	xid.Device:  plog.SeverityNumberError,
	xid.Gone:    plog.SeverityNumberFatal,
}

// eventAttributes are the known optional attributes of an event's record.
func eventAttributes(event *queuedEvent, meaning *xid.Meaning, detail *xid.Detail) []metadata.EventAttributeOption {
	var a workload.Attributes[metadata.EventAttributeOption]
	if meaning.Known {
		a.Text(xid.Reference, metadata.WithNvidiaGpuXidReferenceEventAttribute)
	}
	if event.Replayed {
		a.Text(sourceReplay, metadata.WithNvidiaGpuSourceEventAttribute)
	}
	a.Text(event.GPU.Name, metadata.WithHwNameEventAttribute)
	a.Text(event.GPU.PCIBusID, metadata.WithNvidiaGpuPciBusIDEventAttribute)
	a.Number(event.GPUInstance, metadata.WithNvidiaGpuMigGpuInstanceIDEventAttribute)
	a.Number(event.ComputeInstance, metadata.WithNvidiaGpuMigComputeInstanceIDEventAttribute)
	a.Text(event.Text, metadata.WithNvidiaGpuXidMessageEventAttribute)
	a.Number(event.PID, metadata.WithProcessPidXidEventAttribute)
	a.Text(event.Process, metadata.WithProcessExecutableNameEventAttribute)
	if detail.Unit != "" {
		a.Text(detail.Unit, metadata.WithNvidiaGpuXidUnitEventAttribute)
		a.Number(workload.Number{Value: detail.SubCode, Known: true}, metadata.WithNvidiaGpuXidSubcodeEventAttribute)
		a.Number(workload.Number{Value: detail.Link, Known: detail.Link >= 0}, metadata.WithNvidiaGpuNvlinkLinkEventAttribute)
	}
	return append(a, workloadOf(&event.workload)...)
}
