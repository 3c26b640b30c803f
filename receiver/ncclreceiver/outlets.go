package ncclreceiver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/flightrecorder"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/communicator"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/dump"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/job"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/ras"
)

// maxRanks limits the ranks of a communicator that have a series.
const maxRanks = 64

// metricsOutlet makes metrics and sends them to the pipeline, if there is one.
type metricsOutlet struct {
	next    atomic.Pointer[consumer.Metrics]
	builder *metadata.MetricsBuilder
	report  *receiverhelper.ObsReport
	host    string
}

// send sends the metrics of a job. A pipeline that refuses them gets the next ones.
func (o *metricsOutlet) send(ctx context.Context, reports []communicator.Report, of *job.Job, now time.Time) {
	next := o.next.Load()
	if next == nil {
		return
	}
	for i := range reports {
		o.record(&reports[i], of, pcommon.NewTimestampFromTime(now))
	}
	md := o.builder.Emit(metadata.WithResource(resourceOf(o.builder.NewResourceBuilder(), o.host, of.RunID)))
	if count := md.DataPointCount(); count > 0 {
		ctx = o.report.StartMetricsOp(ctx)
		o.report.EndMetricsOp(ctx, metadata.Type.String(), count, (*next).ConsumeMetrics(ctx, md))
	}
}

// record makes the points of a communicator.
func (o *metricsOutlet) record(r *communicator.Report, of *job.Job, at pcommon.Timestamp) {
	var options workload.Attributes[metadata.MetricAttributeOption]
	options.Text(of.RunID, metadata.WithMlRunIDMetricAttribute)
	options.Text(of.SlurmJobID, metadata.WithSlurmJobIDMetricAttribute)
	options.Text(of.ServiceName, metadata.WithServiceNameMetricAttribute)
	o.builder.RecordNcclCommunicatorSizeDataPoint(at, int64(r.Size), r.Hash, o.host, options...)
	for _, state := range communicator.States {
		o.builder.RecordNcclCommunicatorRanksDataPoint(at, int64(r.Count(state)), r.Hash, stateValue(state), o.host, options...)
	}
	for op, lag := range r.Lag {
		if collective := metadata.MapAttributeNcclCollective[ras.Collectives[op]]; r.Compared {
			o.builder.RecordNcclCommunicatorLagDataPoint(at, int64(lag), r.Hash, collective, o.host, options...) // #nosec G115 -- at most MaxInt64
		}
	}
	for i := range r.Affected[:min(len(r.Affected), maxRanks)] {
		rank := &r.Affected[i]
		own := slices.Clip(options)
		own.Number(of.Rank(r.Communicator, &rank.Rank), metadata.WithMlRankGlobalMetricAttribute)
		own.Text(hostOf(rank), metadata.WithNcclRankHostMetricAttribute)
		own.Number(pidOf(rank), metadata.WithProcessPidMetricAttribute)
		o.builder.RecordNcclRankStateDataPoint(at, 1, r.Hash, int64(rank.Number), stateValue(rank.State), o.host, own...)
	}
}

// resourceOf returns the resource of a run on a host.
func resourceOf(resource *metadata.ResourceBuilder, host, run string) pcommon.Resource {
	resource.SetHostName(host)
	if run != "" {
		resource.SetMlRunID(run)
	}
	return resource.Emit()
}

// hostOf returns the address of a rank's host, empty if unknown.
func hostOf(rank *communicator.Ranked) string {
	if !rank.Host.IsValid() {
		return ""
	}
	return rank.Host.String()
}

func pidOf(rank *communicator.Ranked) workload.Number {
	return workload.Number{Value: int64(rank.PID), Known: rank.PID > 0}
}

// stateValue returns the attribute value of a state.
func stateValue(state communicator.State) metadata.AttributeNcclRankState {
	return metadata.MapAttributeNcclRankState[string(state)]
}

// maxPending limits the records that wait for the pipeline.
const maxPending = 1024

// logsOutlet makes log records and sends them to the pipeline, if there is one.
type logsOutlet struct {
	next    atomic.Pointer[consumer.Logs]
	builder *metadata.LogsBuilder
	report  *receiverhelper.ObsReport
	host    string
	lost    func(n int)
	// pending are the records that the pipeline has not taken yet.
	pending plog.Logs
}

// changes adds a record for each rank whose state has changed. A process with the
// same change in several communicators has one, of the largest.
func (o *logsOutlet) changes(reports []communicator.Report, of *job.Job, now time.Time) {
	type process struct {
		host        string
		pid, device int
		state       communicator.State
	}
	seen := make(map[process]bool)
	for i := range reports {
		for k := range reports[i].Changed {
			rank := &reports[i].Changed[k]
			key := process{hostOf(rank), rank.PID, rank.Device, rank.State}
			if key.host != "" && rank.PID > 0 && seen[key] {
				continue
			}
			seen[key] = true
			o.change(&reports[i], rank, of, now)
		}
	}
}

// change adds the record of a rank.
func (o *logsOutlet) change(r *communicator.Report, rank *communicator.Ranked, of *job.Job, now time.Time) {
	severity, body := sentence(r, rank)
	o.add(of.RunID, severity, body, now, func(ctx context.Context, at pcommon.Timestamp) {
		var a workload.Attributes[metadata.EventAttributeOption]
		a.Number(of.Rank(r.Communicator, &rank.Rank), metadata.WithMlRankGlobalEventAttribute)
		a.Number(pidOf(rank), metadata.WithProcessPidEventAttribute)
		a.Number(of.RunAttempt, metadata.WithMlRunAttemptEventAttribute)
		a.Number(of.WorldSize, metadata.WithMlWorldSizeEventAttribute)
		a.Text(hostOf(rank), metadata.WithNcclRankHostEventAttribute)
		a.Text(of.RunID, metadata.WithMlRunIDEventAttribute)
		a.Text(of.SlurmJobID, metadata.WithSlurmJobIDEventAttribute)
		a.Text(of.ServiceName, metadata.WithServiceNameEventAttribute)
		a.Text(of.UserID, metadata.WithUserIDEventAttribute)
		o.builder.RecordNcclRankChangeEvent(ctx, at, r.Hash, int64(rank.Number), stateValue(rank.State), o.host, a...)
	})
}

// dump adds the record of a Flight Recorder dump, with its run and its groups if they are known.
func (o *logsOutlet) dump(found *dump.Dump, run string, groups []any, now time.Time) {
	rank := workload.Number{Value: found.Rank, Known: found.Rank >= 0}
	body := "PyTorch has written the Flight Recorder dump " + found.Path
	if rank.Known {
		body = fmt.Sprintf("%s of rank %d", body, rank.Value)
	}
	o.add(run, plog.SeverityNumberWarn, body+".", now, func(ctx context.Context, _ pcommon.Timestamp) {
		var a workload.Attributes[metadata.EventAttributeOption]
		a.Number(rank, metadata.WithMlRankGlobalEventAttribute)
		a.Text(run, metadata.WithMlRunIDEventAttribute)
		if len(groups) > 0 {
			a = append(a, metadata.WithPytorchProcessGroupsEventAttribute(groups))
		}
		o.builder.RecordPytorchFlightRecorderDumpEvent(ctx, pcommon.NewTimestampFromTime(found.Written), found.Path, found.Size, o.host, a...)
	})
}

// wait adds the record of a collective that ranks wait in.
func (o *logsOutlet) wait(v *flightrecorder.Verdict, run string, now time.Time) {
	o.add(run, plog.SeverityNumberError, v.Sentence(), now, func(ctx context.Context, at pcommon.Timestamp) {
		var a workload.Attributes[metadata.EventAttributeOption]
		ranks := func(of []int64, attribute func([]any) metadata.EventAttributeOption) {
			if len(of) > 0 {
				a = append(a, attribute(values(of)))
			}
		}
		ranks(v.Missing, metadata.WithPytorchRanksMissingEventAttribute)
		ranks(v.Differing, metadata.WithPytorchRanksDifferingEventAttribute)
		ranks(v.Unknown, metadata.WithPytorchRanksUnknownEventAttribute)
		a.Text(v.Frame, metadata.WithCodeFrameEventAttribute)
		a.Text(run, metadata.WithMlRunIDEventAttribute)
		o.builder.RecordPytorchFlightRecorderWaitEvent(ctx, at, cmp.Or(v.Description, v.Group), v.Number, v.Operation, values(v.Waiting), o.host, a...)
	})
}

// maxListed limits the ranks of a list in a record.
const maxListed = 256

func values(ranks []int64) []any {
	return mlattr.Mapped(ranks[:min(len(ranks), maxListed)], func(rank int64) any { return rank })
}

// add adds the record that build makes, if its event is enabled and there is room. Without
// a pipeline there is nothing to lose.
func (o *logsOutlet) add(run string, severity plog.SeverityNumber, body string, now time.Time, build func(context.Context, pcommon.Timestamp)) {
	if o.pending.LogRecordCount() >= maxPending {
		if o.next.Load() != nil {
			o.lost(1)
		}
		return
	}
	at := pcommon.NewTimestampFromTime(now)
	build(context.Background(), at)
	logs := o.builder.Emit(metadata.WithLogsResource(resourceOf(o.builder.NewResourceBuilder(), o.host, run)))
	shared.Finish(logs, at, severity, body)
	logs.ResourceLogs().MoveAndAppendTo(o.pending.ResourceLogs())
}

// send sends what is pending. What the pipeline refuses for now is sent again next
// time, and what comes before the pipeline starts is sent to it then.
func (o *logsOutlet) send(ctx context.Context) {
	count := o.pending.LogRecordCount()
	next := o.next.Load()
	if count == 0 || next == nil {
		return
	}
	// A consumer may change records even if it refuses them.
	logs := plog.NewLogs()
	o.pending.CopyTo(logs)
	ctx = o.report.StartLogsOp(ctx)
	err := (*next).ConsumeLogs(ctx, logs)
	o.report.EndLogsOp(ctx, metadata.Type.String(), count, err)
	if err != nil && !consumererror.IsPermanent(err) {
		return
	}
	o.pending = plog.NewLogs()
	if err != nil {
		o.lost(count)
	}
}

// sentence says what has become of a rank.
func sentence(r *communicator.Report, rank *communicator.Ranked) (severity plog.SeverityNumber, text string) {
	who := fmt.Sprintf("Rank %d of the %d ranks of communicator %s", rank.Number, r.Size, r.Hash)
	if rank.Host.IsValid() && rank.PID > 0 {
		who += fmt.Sprintf(" (process %d on %s)", rank.PID, rank.Host)
	}
	switch rank.State {
	case communicator.Missing:
		return plog.SeverityNumberWarn, who + " is missing: its process responds and does not have the communicator."
	case communicator.Unresponsive:
		return plog.SeverityNumberError, who + " does not respond."
	case communicator.Dead:
		return plog.SeverityNumberError, who + " is dead: NCCL has given its process up."
	case communicator.Behind:
		return plog.SeverityNumberWarn, who + " is behind, and the others wait for it" + behindBy(r, rank) + "."
	}
	return plog.SeverityNumberInfo, who + " is no longer missing or behind."
}

// behindBy says which operations a rank has not launched.
func behindBy(r *communicator.Report, rank *communicator.Ranked) string {
	for op, most := range r.Most {
		if rank.Counts[op] < most {
			return fmt.Sprintf(": it has launched %d %s operations of %d", rank.Counts[op], ras.Collectives[op], most)
		}
	}
	return ""
}
