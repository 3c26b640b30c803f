package smoke

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// ncclStatus is what NCCL says of a job whose second rank is dead, whose first one is
// the process %d on this host.
const ncclStatus = `{"nccl_version": "2.30.7", "communicators_count": 1, "communicators": [{"hash": "0x1a2b", "secondary_hash": "0x3c:0x4d",
"size": 2, "ranks_count": 1, "missing_ranks_count": 1, "ranks": [{"rank": 0, "host": "127.0.0.1", "pid": %d, "cuda_dev": 0, "nvml_dev": 0,
"status": {"init_state": 0, "async_error": 0, "finalize_called": false, "destroy_flag": false, "abort_flag": false},
"collective_counts": {"Broadcast": 1, "Reduce": 0, "AllGather": 4, "ReduceScatter": 4, "AllReduce": 9}}],
"missing_ranks": [{"rank": 1, "host": "10.99.99.2", "pid": 77, "cuda_dev": 0, "nvml_dev": 0, "status": {"unresponsive": true, "considered_dead": true}}]}],
"ras": {"collection_time_sec": 0.01, "timeouts_count": 0}}
`

// startNCCL serves a status by the protocol of NCCL's RAS service, and returns its
// address.
func startNCCL(t *testing.T, status string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, listener.Close()) })
	replies := map[string]string{"CLIENT PROTOCOL 2": "SERVER PROTOCOL 2\n", "TIMEOUT 5": "OK\n", "SET FORMAT json": "OK\n", "STATUS": status}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			for lines := bufio.NewScanner(conn); lines.Scan(); {
				reply, known := replies[lines.Text()]
				if _, err := io.WriteString(conn, reply); err != nil || !known || lines.Text() == "STATUS" {
					break
				}
			}
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// stepsOfMostRanks are steps of two ranks of a run of three. The last one never sends.
func stepsOfMostRanks() ptrace.Traces {
	td := ptrace.NewTraces()
	now := time.Now()
	for rank := range 2 {
		spans := td.ResourceSpans().AppendEmpty()
		for key, value := range map[string]string{"service.name": "trainer", "ml.run.id": "run-nccl", "host.name": "gpu-01"} {
			spans.Resource().Attributes().PutStr(key, value)
		}
		spans.Resource().Attributes().PutInt("ml.rank.global", int64(rank))
		spans.Resource().Attributes().PutInt("ml.world_size", 3)
		span := spans.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
		span.SetTraceID([16]byte(binary.BigEndian.AppendUint64(make([]byte, 8), uint64(now.UnixNano())+uint64(rank))))
		span.SetSpanID([8]byte{1})
		span.SetName("optimizer.step")
		span.Attributes().PutStr("ml.phase", "optimizer")
		span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-time.Millisecond)))
		span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
	}
	return td
}

// startTrainer starts a process of rank 0 of the run run-nccl, and returns its id.
func startTrainer(t *testing.T) int {
	t.Helper()
	trainer := exec.Command("sleep", "600")
	trainer.Env = append(os.Environ(), "RANK=0", "WORLD_SIZE=2", "TORCHELASTIC_RUN_ID=run-nccl", "OTEL_SERVICE_NAME=trainer")
	require.NoError(t, trainer.Start())
	t.Cleanup(func() { _ = trainer.Process.Kill(); _ = trainer.Wait() })
	return trainer.Process.Pid
}

// What NCCL says of a rank is in the evidence of the hang that ml_metrics concludes from it.
func TestTheEvidenceOfAMissingRank(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "reproductions")
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Merged: []string{harness.Path("distribution", "config", "nccl.yaml")},
		Env: []string{
			"NCCL_RAS_ADDR=" + startNCCL(t, fmt.Sprintf(ncclStatus, startTrainer(t))), "OTELCOL_ML_REPRO_DIR=" + folder,
		},
		Overrides: map[string]any{
			"connectors::ml_metrics::flush_interval": "1s", "connectors::ml_metrics::first_step_timeout": "5s",
		},
	})
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, sender.Close()) })
	var found []string
	require.Eventually(t, func() bool {
		require.NoError(t, sender.Traces(t.Context(), stepsOfMostRanks()))
		found, _ = filepath.Glob(filepath.Join(folder, "*", "*", "log.txt"))
		return len(found) > 0
	}, time.Minute, poll)
	log, err := os.ReadFile(found[0])
	require.NoError(t, err)
	assert.Contains(t, string(log), "Rank 1 of the 2 ranks of communicator 0x1a2b:0x3c:0x4d (process 77 on 10.99.99.2) is dead: NCCL has given its process up.\n")
	stopDropIn(t, collector)
}

// A rank that NCCL misses has a series and a record with its run, also where
// production.yaml removes text. The run is that of a process beside the collector.
func TestTheMissingRank(t *testing.T) {
	t.Parallel()
	sink := harness.StartSink(t)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "production.yaml"),
		Merged: []string{harness.Path("distribution", "config", "nccl.yaml")},
		Env: []string{
			"NCCL_RAS_ADDR=" + startNCCL(t, fmt.Sprintf(ncclStatus, startTrainer(t))),
			"LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT=" + sink.Endpoint,
		},
	})
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		found := harness.Select(samples, "nccl_rank_state", harness.Labels{
			"nccl_communicator_hash": "0x1a2b:0x3c:0x4d", "nccl_rank": "1", "nccl_rank_state": "dead", "nccl_rank_host": "10.99.99.2",
			"ml_run_id": "run-nccl", "ml_rank_global": "1", "process_pid": "77",
		})
		if assert.Len(c, found, 1) {
			assert.InDelta(c, 1, found[0].Value, 0)
		}
		found = harness.Select(samples, "nccl_communicator_ranks", harness.Labels{"nccl_rank_state": "ok", "ml_run_id": "run-nccl"})
		if assert.Len(c, found, 1) {
			assert.InDelta(c, 1, found[0].Value, 0)
		}
	}, arrival, poll)
	samples, err := harness.Scrape(t.Context(), collector.Address(t, harness.TelemetryPath))
	require.NoError(t, err)
	assert.NotEmpty(t, harness.Select(samples, "otelcol_receiver_nccl_queries", harness.Labels{"outcome": "answered"}))
	var records []plog.LogRecord
	require.Eventually(t, func() bool { records = sink.LogRecords(); return len(records) > 0 }, arrival, poll)
	require.Len(t, records, 1)
	assert.Equal(t, "nccl.rank.change", records[0].EventName())
	attributes := records[0].Attributes().AsRaw()
	assert.Equal(t, "dead", attributes["nccl.rank.state"])
	assert.Equal(t, "run-nccl", attributes["ml.run.id"])
	assert.Equal(t, int64(1), attributes["ml.rank.global"])
	stopDropIn(t, collector)
}

// startHost starts a collector with agent-gateway.yaml and nccl.yaml on a host that has processes of
// some ranks of the run run-nccl, and returns it and the host's root.
func startHost(t *testing.T, gateway string, ranks ...int) (collector *harness.Collector, root string) {
	t.Helper()
	root = t.TempDir()
	write := func(name, text string) {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	write("etc/hostname", fmt.Sprintf("gpu-%d\n", ranks[0]))
	write("tmp/other", "")
	for _, rank := range ranks {
		process := fmt.Sprintf("proc/%d/", 100+rank)
		write(process+"stat", fmt.Sprintf("%d (python) S%s\n", 100+rank, strings.Repeat(" 1", 30)))
		write(process+"cgroup", "0::/\n")
		write(process+"environ", fmt.Sprintf("RANK=%d\x00WORLD_SIZE=4\x00TORCHELASTIC_RUN_ID=run-nccl\x00", rank))
	}
	collector = harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent-gateway.yaml"),
		Merged: []string{harness.Path("distribution", "config", "nccl.yaml")},
		Env: []string{
			"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(t.TempDir(), "queue"), "OTELCOL_ML_REPRO_DIR=" + filepath.Join(t.TempDir(), "reproductions"),
			"NCCL_RAS_ADDR=127.0.0.1:1",
		},
		Overrides: map[string]any{
			"exporters::load_balancing::resolver":                            map[string]any{"dns": nil, "static": map[string]any{"hostnames": []string{gateway}}},
			"exporters::load_balancing::sending_queue::batch::flush_timeout": "100ms",
			"receivers::nccl::root_path":                                     root,
		},
	})
	return collector, root
}

// Dumps of two hosts that share no folder are compared by the gateway: neither host knows the
// ranks of the other. The dumps are those of four real ranks, of which rank 2 loads data.
func TestDumpsOfTwoHosts(t *testing.T) {
	t.Parallel()
	sink := harness.StartSink(t)
	gateway := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "gateway.yaml"),
		Env: []string{
			"OTELCOL_ML_TRUSTED_SENDERS=[127.0.0.1/32]", "LOGS_EXPORTER=otlp_grpc/logs", "LOGS_ENDPOINT=" + sink.Endpoint,
			"OTELCOL_ML_QUEUE_DIR=" + filepath.Join(t.TempDir(), "queue"),
		},
		Overrides: map[string]any{
			"connectors::ml_metrics::flush_interval": "1s", "connectors::ml_metrics::first_step_timeout": "45s", // after the dumps
		},
	})
	address := gateway.Address(t, "receivers::otlp::protocols::grpc")
	ranks := [][]int{{0, 1}, {2, 3}}
	var sender *harness.GRPCSender
	var roots []string
	for i := range ranks {
		host, root := startHost(t, address, ranks[i]...)
		sender, roots = senderTo(t, host), append(roots, root)
	}
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NoError(c, sender.Traces(t.Context(), stepsOfMostRanks()))
		samples, err := harness.Scrape(t.Context(), gateway.Address(t, "exporters::prometheus"))
		require.NoError(c, err)
		assert.NotEmpty(c, harness.Select(samples, "ml_run_state", harness.Labels{"ml_run_id": "run-nccl"}))
	}, arrival, poll)
	for i, root := range roots {
		for _, rank := range ranks[i] {
			dump, err := os.ReadFile(harness.Path("internal", "shared", "flightrecorder", "testdata", "2.9.1", fmt.Sprintf("data_rank_%d", rank)))
			require.NoError(t, err)
			path := filepath.Join(root, "tmp", fmt.Sprintf("comm_lib_trace_rank_%d", rank))
			require.NoError(t, os.WriteFile(path, dump, 0o600))
		}
	}
	said := func() (evidence []string) {
		for _, record := range sink.LogRecords() {
			if kind, ok := record.Attributes().Get("ml.problem"); ok && kind.Str() == "rank_missing" {
				all, _ := record.Attributes().Get("ml.problem.evidence")
				for _, one := range all.Slice().All() {
					evidence = append(evidence, one.Str())
				}
			}
		}
		return evidence
	}
	const sentence = "Flight Recorder: ranks 0, 1, 3 wait in all_gather #8 of the group default_pg (record.py:37 in train_step) for rank 2, which has not called it"
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		require.NoError(c, sender.Traces(t.Context(), stepsOfMostRanks()))
		assert.Subset(c, said(), []string{sentence, "Flight Recorder: rank 2 was last in all_reduce #7 (record.py:35 in train_step)"})
	}, 3*time.Minute, poll)
}
