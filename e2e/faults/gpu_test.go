package faults

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// deadGPU is a recording of a GPU that a process of run-a holds until it falls off the bus
// (XID 79). Then its process is gone, the driver no longer lists it, and is unloaded. When it
// is back, the GPU is well again.
const deadGPU = `version: 1
origin: made for a test
host_name: gpu-node-1
duration: 24h
gpus:
  - uuid: GPU-dies
    index: 0
    processes: [{pid: 7, executable: python3, user_id: 1000, environ: [TORCHELASTIC_RUN_ID=run-a, RANK=0, OTEL_SERVICE_NAME=trainer], cgroup: "0::/system.slice/slurmstepd.scope/job_815/step_0/user/task_0"}]
  - uuid: GPU-lives
    index: 1
frames:
  - at: 0s
    attribution: {cgroup: ok, environ: ok, podresources: absent, slurm: ok}
    gpus:
      - uuid: GPU-dies
        memory: {total_bytes: 85520809984, used_bytes: 59022245888}
        processes: [{pid: 7, memory_bytes: 58518929408}]
      - {uuid: GPU-lives, memory: {total_bytes: 85520809984, used_bytes: 577765376}, processes: []}
  - at: 15s
    gpus:
      - {uuid: GPU-dies, lost: true, xids: [{code: 79}]}
      - {uuid: GPU-lives, memory: {total_bytes: 85520809984, used_bytes: 577765376}, processes: []}
  - at: 35s
    gpus:
      - {uuid: GPU-lives, memory: {total_bytes: 85520809984, used_bytes: 577765376}, processes: []}
  - at: 50s
    driver_state: driver_missing
  - at: 4m
    gpus:
      - {uuid: GPU-dies, memory: {total_bytes: 85520809984, used_bytes: 577765376}, processes: []}
      - {uuid: GPU-lives, memory: {total_bytes: 85520809984, used_bytes: 577765376}, processes: []}
`

// needOfGPU is what the page says of the problem.
type needOfGPU struct {
	Kind            string     `json:"kind"`
	Since           time.Time  `json:"since"`
	NoEvidenceSince *time.Time `json:"no_evidence_since"`
	Ended           *time.Time `json:"ended"`
	EndReason       string     `json:"end_reason"`
	RunID           string     `json:"run_id"`
	Service         string     `json:"service"`
	Job             string     `json:"job"`
	Owner           string     `json:"owner"`
	Subject         string     `json:"subject"`
}

// of is what the problem is of, which is that of its onset.
func (n *needOfGPU) of() []string { return []string{n.RunID, n.Service, n.Job, n.Owner, n.Subject} }

// pageOfGPU is the part of the page's state that the test reads.
type pageOfGPU struct {
	Time     time.Time   `json:"time"`
	Needs    []needOfGPU `json:"needs"`
	Resolved []needOfGPU `json:"resolved"`
	GPUs     []struct {
		ID           string `json:"id"`
		Activity     string `json:"activity"`
		LastActivity string `json:"last_activity"`
	} `json:"gpus"`
}

// failed returns the problem that the GPU has failed, nil if there is none.
func failed(all []needOfGPU) *needOfGPU {
	for i := range all {
		if all[i].Kind == "gpu_failed" {
			return &all[i]
		}
	}
	return nil
}

// aStep is a step of run-a that ended just now.
func aStep() ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	for key, value := range map[string]string{"service.name": "trainer", "ml.run.id": "run-a", "host.name": "gpu-node-1"} {
		rs.Resource().Attributes().PutStr(key, value)
	}
	rs.Resource().Attributes().PutInt("ml.rank.global", 0)
	span, now := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty(), time.Now()
	span.SetName("optimizer")
	span.SetTraceID(pcommon.TraceID{1})
	span.SetSpanID(pcommon.SpanID{byte(now.UnixNano() >> 16), byte(now.UnixNano() >> 24), byte(now.UnixNano() >> 32), 1}) // #nosec G115 -- any id
	span.SetStartTimestamp(pcommon.NewTimestampFromTime(now.Add(-50 * time.Millisecond)))
	span.SetEndTimestamp(pcommon.NewTimestampFromTime(now))
	span.Attributes().PutStr("ml.phase", "optimizer")
	return td
}

// TestAGPUThatFallsOffTheBus: whose the problem is stays that of the onset when the GPU and
// its process are gone. Without evidence it is grey after two minutes, with its age. Once the
// GPU is well again for ten minutes it has ended, and is under "resolved". With -short it
// ends when the GPU is gone.
func TestAGPUThatFallsOffTheBus(t *testing.T) {
	t.Parallel()
	recording := filepath.Join(t.TempDir(), "recording.yaml")
	require.NoError(t, os.WriteFile(recording, []byte(deadGPU), 0o600))
	c := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "demo.yaml"),
		Overrides: map[string]any{
			"receivers::gpu::collection_interval": "2s", "connectors::ml_metrics::flush_interval": "1s", "exporters::ml_view::interval": "500ms",
		},
		Env: []string{"GPU_RECORDING=" + recording, "OTELCOL_ML_REPRO_DIR=" + filepath.Join(t.TempDir(), "reproductions")},
		Dir: t.TempDir(),
	})
	c.AwaitHealthy(t)
	sender, err := harness.NewGRPCSender(c.Address(t, "receivers::otlp::protocols::grpc"))
	require.NoError(t, err)
	defer func() { assert.NoError(t, sender.Close()) }()
	get := func(t2 require.TestingT, path string) string {
		text, err := harness.Get(t.Context(), "http://"+c.Address(t, "exporters::ml_view")+path)
		require.NoError(t2, err)
		return text
	}
	page := func(t2 require.TestingT) (p pageOfGPU) {
		require.NoError(t2, json.Unmarshal([]byte(get(t2, "/api/v1/state")), &p))
		return p
	}

	var onset needOfGPU
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		n := failed(page(t2).Needs)
		if n == nil {
			require.NoError(t2, sender.Traces(t.Context(), aStep()))
		}
		require.NotNil(t2, n)
		onset = *n
	}, time.Minute, 200*time.Millisecond)
	assert.Equal(t, []string{"run-a", "trainer", "slurm job 815", "uid 1000", "gpu-node-1: GPU 0"}, onset.of())
	assert.Nil(t, onset.NoEvidenceSince)

	// stays reports what the page has of the problem, which is as it was.
	stays := func(t2 require.TestingT, p *pageOfGPU) *needOfGPU {
		n := failed(p.Needs)
		require.NotNil(t2, n)
		assert.Equal(t, onset.of(), n.of())
		assert.Equal(t, onset.Since, n.Since)
		assert.Nil(t, failed(p.Resolved))
		return n
	}
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		p := page(t2)
		stays(t2, &p)
		for _, g := range p.GPUs {
			if g.ID == "GPU-dies" {
				assert.Equal(t2, []string{"no_data", "failed"}, []string{g.Activity, g.LastActivity})
			}
		}
	}, 2*time.Minute, time.Second)
	if testing.Short() {
		return
	}
	var lost time.Time
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		p := page(t2)
		n := stays(t2, &p)
		require.NotNil(t2, n.NoEvidenceSince)
		assert.True(t2, n.NoEvidenceSince.After(n.Since))
		lost = *n.NoEvidenceSince
		assert.Contains(t2, get(t2, "/?width=200"), "no new evidence for")
	}, 4*time.Minute, time.Second)
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		p := page(t2)
		n := failed(p.Resolved)
		require.NotNil(t2, n)
		assert.Nil(t2, failed(p.Needs))
		assert.Equal(t2, onset.of(), n.of())
		assert.WithinDuration(t2, onset.Since, n.Since, time.Millisecond)
		assert.Equal(t2, "over", n.EndReason)
		require.NotNil(t2, n.Ended)
		assert.True(t2, n.Ended.After(lost), "it ended when the GPU was well")
		assert.GreaterOrEqual(t2, p.Time.Sub(*n.Ended), 10*time.Minute, "it has been well for as long")
	}, 15*time.Minute, 5*time.Second)
}
