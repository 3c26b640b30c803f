package ncclreceiver

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/receiver/receiverhelper"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/communicator"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/job"
	"github.com/otelcol-ml/otelcol-ml/receiver/ncclreceiver/internal/metadata"
)

// maxRanks limits the ranks of a communicator that have a series.
const maxRanks = 64

// metricsOutlet makes metrics and sends them to the pipeline, if there is one.
type metricsOutlet struct {
	next    atomic.Pointer[consumer.Metrics]
	builder *metadata.MetricsBuilder
	report  *receiverhelper.ObsReport
}

// send sends the metrics of a job. A pipeline that refuses them gets the next ones.
func (o *metricsOutlet) send(ctx context.Context, reports []communicator.Report, of *job.Job, host string, now time.Time) {
	next := o.next.Load()
	if next == nil {
		return
	}
	at := pcommon.NewTimestampFromTime(now)
	for i := range reports {
		o.record(&reports[i], of, host, at)
	}
	md := o.builder.Emit(metadata.WithResource(resourceOf(o.builder.NewResourceBuilder(), host, of.RunID)))
	if md.DataPointCount() == 0 {
		return
	}
	ctx = o.report.StartMetricsOp(ctx)
	count := md.DataPointCount()
	err := (*next).ConsumeMetrics(ctx, md)
	o.report.EndMetricsOp(ctx, metadata.Type.String(), count, err)
}

// record makes the points of a communicator.
func (o *metricsOutlet) record(r *communicator.Report, of *job.Job, host string, at pcommon.Timestamp) {
	var options workload.Attributes[metadata.MetricAttributeOption]
	options.Text(of.RunID, metadata.WithMlRunIDMetricAttribute)
	options.Text(of.SlurmJobID, metadata.WithSlurmJobIDMetricAttribute)
	options.Text(of.ServiceName, metadata.WithServiceNameMetricAttribute)
	o.builder.RecordNcclCommunicatorSizeDataPoint(at, int64(r.Size), r.Hash, host, options...)
	for _, state := range communicator.States {
		o.builder.RecordNcclCommunicatorRanksDataPoint(at, int64(r.Count(state)), r.Hash, stateValue(state), host, options...)
	}
	for op, lag := range r.Lag {
		if r.Compared {
			o.builder.RecordNcclCommunicatorLagDataPoint(at, int64(lag), r.Hash, collectives[op], host, options...) // #nosec G115 -- at most MaxInt64
		}
	}
	for i := range r.Affected[:min(len(r.Affected), maxRanks)] {
		rank := &r.Affected[i]
		own := slices.Clip(options)
		global, known := of.Rank(r.Communicator, &rank.Rank)
		own.Number(workload.Number{Value: global, Known: known}, metadata.WithMlRankGlobalMetricAttribute)
		own.Text(hostOf(rank), metadata.WithNcclRankHostMetricAttribute)
		own.Number(workload.Number{Value: int64(rank.PID), Known: rank.PID > 0}, metadata.WithProcessPidMetricAttribute)
		o.builder.RecordNcclRankStateDataPoint(at, 1, r.Hash, int64(rank.Number), stateValue(rank.State), host, own...)
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

// collectives has the attribute values in the order of ras.Collectives.
var collectives = [...]metadata.AttributeNcclCollective{
	metadata.AttributeNcclCollectiveBroadcast, metadata.AttributeNcclCollectiveReduce,
	metadata.AttributeNcclCollectiveAllGather, metadata.AttributeNcclCollectiveReduceScatter,
	metadata.AttributeNcclCollectiveAllReduce,
}

// stateValue returns the attribute value of a state.
func stateValue(state communicator.State) metadata.AttributeNcclRankState {
	return metadata.MapAttributeNcclRankState[string(state)]
}
