// Package hangs has eight processes of PyTorch hang in five ways, beside the built collector.
package hangs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

var python = flag.String("python", "", "a Python that has PyTorch 2.8 or newer")

const (
	ranks, odd = 8, 5
	run        = "llama-sft-1"
	// starts is how long the processes may take to import PyTorch, and to take their steps.
	starts = 5 * time.Minute
	// concludes is how long a hang may last until it is a problem, and gathers is what its
	// evidence may take then.
	concludes, gathers = 3 * time.Minute, time.Minute
	poll               = time.Second
)

// hold sends a reading of the GPU of each rank, of which there are none here: they compute, or wait
// for the one of the rank that differs, as kernels of NCCL do.
func hold(t *testing.T, sender *harness.GRPCSender, waits bool) {
	md := pmetric.NewMetrics()
	metrics := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty().Metrics()
	for _, name := range []string{"nvidia.gpu.workload.memory.usage", "hw.gpu.utilization", "hw.power"} {
		m := metrics.AppendEmpty()
		m.SetName(name)
		points := m.SetEmptyGauge().DataPoints()
		for rank := range ranks {
			point := points.AppendEmpty()
			point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			point.Attributes().PutStr("host.name", "gpu-01")
			point.Attributes().PutStr("hw.id", fmt.Sprint("GPU-", rank))
			switch name {
			case "hw.gpu.utilization":
				point.Attributes().PutStr("hw.gpu.task", "general")
				point.SetDoubleValue(map[bool]float64{false: 1}[waits && rank == odd])
			case "hw.power":
				point.SetDoubleValue(map[bool]float64{true: 120, false: 600}[waits])
			default:
				point.SetIntValue(61 << 30)
				point.Attributes().PutStr("ml.run.id", run)
				point.Attributes().PutInt("ml.rank.global", int64(rank))
			}
		}
	}
	assert.NoError(t, sender.Metrics(t.Context(), md))
}

// TestHangs: the rank that differs is named, and the evidence is whole within a minute of the
// problem. Nothing is gathered of the run while it takes steps.
func TestHangs(t *testing.T) {
	if *python == "" {
		t.Skip("-python names no Python with PyTorch")
	}
	for name, why := range map[string]string{
		"skip":  "for rank 5, which calls something else. Rank 5 was last in barrier",
		"order": "for rank 5, which calls something else. Rank 5 was last in broadcast",
		"shape": "of rank 5 there is no dump", // Gloo ends a process with other sizes
		"dies":  "of rank 5 there is no dump",
		"data":  "for rank 5, which has not called it",
	} {
		t.Run(name, func(t *testing.T) { hang(t, name, why) })
	}
}

func hang(t *testing.T, name, why string) {
	dumps, bundles := t.TempDir(), filepath.Join(t.TempDir(), "reproductions")
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"), Merged: []string{harness.Path("distribution", "config", "nccl.yaml")},
		Overrides: map[string]any{
			"connectors::ml_metrics::flush_interval":           "1s",
			"connectors::ml_metrics::stall_timeout":            "70s", // after the dumps were compared
			"exporters::debug::verbosity":                      "detailed",
			"processors::ml_guard::trusted_senders":            []string{"loopback"},
			"processors::repro_gen::directory":                 bundles,
			"processors::repro_gen::evidence::flight_recorder": []string{filepath.Join(dumps, "comm_lib_trace_rank_*")},
			"receivers::nccl::collection_interval":             "15s",
			"receivers::nccl::flight_recorder":                 []string{filepath.Join(dumps, "comm_lib_trace_rank_*")},
		},
	})
	sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, sender.Close()) }()
	port := harness.FreePort(t)
	var processes []*harness.Process
	for rank := range ranks {
		processes = append(processes, harness.Start(t, harness.Command{
			Name: "rank " + strconv.Itoa(rank), Path: *python, Args: []string{
				harness.Path("e2e", "hangs", "rank.py"), name, dumps, "http://" + collector.Address(t, "receivers::otlp::protocols::http") + "/v1/traces",
			},
			Env: []string{
				"RANK=" + strconv.Itoa(rank), "WORLD_SIZE=" + strconv.Itoa(ranks), "MASTER_ADDR=127.0.0.1", "MASTER_PORT=" + strconv.Itoa(port),
				"TORCHELASTIC_RUN_ID=" + run, "TORCH_FR_BUFFER_SIZE=200", "OMP_NUM_THREADS=1",
			},
		}))
	}
	written := func() []string {
		reports, err := filepath.Glob(filepath.Join(bundles, "*", "*", "report.md"))
		require.NoError(t, err)
		return reports
	}
	need := func() bool {
		hold(t, sender, true)
		state, err := view.Read(t.Context(), collector.Address(t, "exporters::ml_view"))
		require.NoError(t, err)
		for i := range state.Needs {
			if state.Needs[i].Kind == "looks_hung" {
				return true
			}
		}
		return false
	}
	require.Eventually(t, func() bool {
		hold(t, sender, false)
		found, err := filepath.Glob(filepath.Join(dumps, "comm_lib_trace_rank_*"))
		require.NoError(t, err)
		return len(found) > 0
	}, starts, poll, "the run stands")
	assert.Empty(t, written(), "it took steps until now")
	require.Eventually(t, need, concludes, poll, "it hangs")
	concluded := time.Now()
	require.Eventually(t, func() bool { return len(written()) > 0 }, gathers, poll)
	t.Logf("gathered %v after the hang was on the page", time.Since(concluded).Round(100*time.Millisecond))

	folder := filepath.Dir(written()[0])
	report, err := os.ReadFile(filepath.Join(folder, "report.md"))
	require.NoError(t, err)
	assert.Regexp(t, `^# Ranks? .* waits? in .*\n\n.*`+run+".*looks hung", string(report), "the dumps were compared before")
	assert.Contains(t, string(report), why)
	sentence, _, _ := strings.Cut(why, ". ")
	assert.Regexp(t, `\n- Flight Recorder: ranks? .* waits? in .*`+sentence, string(report), "ml_metrics compares them, too")
	copied, err := filepath.Glob(filepath.Join(folder, "dump-*-comm_lib_trace_rank_*"))
	require.NoError(t, err)
	living := ranks
	for rank, process := range processes {
		if !process.Running() {
			require.Equal(t, odd, rank)
			living--
			continue
		}
		assert.Contains(t, string(report), fmt.Sprintf("process %d (", process.PID()))
		assert.Regexp(t, fmt.Sprintf(`process %d \(\S+\), rank %d: \d+ of its threads `, process.PID(), rank), string(report))
	}
	assert.Len(t, copied, living)
	assert.Contains(t, string(report), "confirmed by 7 GPUs that are busy")
	verdict := regexp.MustCompile(`Body: Str\((Ranks? .* waits? in .*)\)`).FindAllStringSubmatch(collector.Output(), -1)
	require.NotEmpty(t, verdict, "the dumps were compared")
	last := verdict[len(verdict)-1][1]
	t.Log(last)
	assert.Contains(t, last, why)
}
