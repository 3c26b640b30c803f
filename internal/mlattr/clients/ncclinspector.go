package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// ncclInspector is the vocabulary of NCCL's Inspector, a profiler plug-in that runs
// in each rank of a job. Its numbers come by OTLP, all attributes as text, or from a
// Prometheus text file; both have the names below. A point names its node and nothing
// of its run but, in the text file, the job.
func ncclInspector() table.Table {
	return table.Table{
		Name:           "nccl_inspector",
		Title:          "NCCL Inspector",
		Page:           "https://github.com/NVIDIA/nccl/tree/master/plugins/profiler/inspector",
		Services:       []string{"nccl-inspector"},
		Scopes:         []string{"nccl-inspector"},
		MetricPrefixes: []string{"nccl_bus_bandwidth_", "nccl_collective", "nccl_p2p_"},
		Point: []table.Alias{
			{Source: "node", Canonical: mlattr.HostName},
			{Source: "slurm_job_id", Canonical: mlattr.RunID, Kind: table.KindJobID},
		},
		// Each is another one for each operation, or for each start of the job. They
		// are sent in verbose mode.
		Unbounded: []string{"comm_id", "coll_sn", "coll_msg_size_bytes", "p2p_sn", "p2p_peer", "p2p_msg_size_bytes"},
		Metrics: []table.Metric{
			{Source: "nccl_bus_bandwidth_gbs", Measure: table.MeasureCollectiveBandwidth, Instrument: table.Gauge, Unit: "GB/s"},
			{Source: "nccl_p2p_bus_bandwidth_gbs", Measure: table.MeasureCollectiveBandwidth, Instrument: table.Gauge, Unit: "GB/s"},
			{Source: "nccl_collective_exec_time_microseconds", Measure: table.MeasureCollectiveDuration, Instrument: table.Gauge, Unit: "us"},
			{Source: "nccl_p2p_exec_time_microseconds", Measure: table.MeasureCollectiveDuration, Instrument: table.Gauge, Unit: "us"},
			{Source: "nccl_collectives", Measure: table.MeasureCollectives, Instrument: table.Counter},
			{Source: "nccl_p2p", Measure: table.MeasureCollectives, Instrument: table.Counter},
		},
	}
}
