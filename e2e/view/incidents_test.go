package view_test

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
	"github.com/otelcol-ml/otelcol-ml/e2e/view"
)

// incident is what the page has to say of one.
type incident struct {
	name string
	kind string
	// of is the run's id, the service, or the subject.
	of string
	// onset is when it went wrong by what was sent, and before, if it is set, when all was
	// last well. The page may say up to slack later: when it could be known. A collector
	// that is behind knows later, but a problem with a timeout began as long before the
	// page has it.
	onset, before  func([]*sentlog.Span, []*sentlog.Metric) int64
	slack, timeout time.Duration
	// evidence are words that the evidence has, changed those of a change before.
	evidence, changed []string
	// next is a word of what to do.
	next  string
	owner string
	gpus  int
}

var incidents = []incident{
	{
		name: "hang", next: "rank 13", kind: "looks_hung", of: "llama-sft-48211", owner: "uid 1001", gpus: 16,
		onset: lastSpan("llama-sft"), slack: 3 * time.Second, timeout: 3 * time.Second,
		evidence: []string{"rank 13", "gpu-02", "data_load", "forward", "100 %", "210 W"},
	},
	{
		name: "slow-input", next: "input", kind: "slow", of: "qwen-dpo-48260", owner: "uid 1002", gpus: 8,
		onset: firstSpan(func(s *sentlog.Span) bool { return s.Resource["ml.run.attempt"] == int64(1) }), slack: 8 * time.Second,
		evidence: []string{"data_load"}, changed: []string{"attempt 2", "gpu-05"},
	},
	{
		name: "bad-version", next: "reproduce the newest", kind: "failing", of: "support-agent",
		onset: firstSpan(func(s *sentlog.Span) bool { return s.Attributes["error.type"] == "ToolTimeout" }), slack: 5 * time.Second,
		evidence: []string{"ToolTimeout", "1.8.2"}, changed: []string{"1.8.2"},
	},
	{
		name: "bad-version's tool", kind: "tool_errors", of: "support-agent",
		onset: firstSpan(func(s *sentlog.Span) bool { return s.Attributes["error.type"] == "ToolTimeout" }), slack: 5 * time.Second,
		evidence: []string{"lookup_order", "1.8.2"}, changed: []string{"1.8.2"},
	},
	{
		name: "held-idle", next: "owner", kind: "held_idle", of: "gpu-08", owner: "uid 1003", gpus: 4,
		onset: firstIdle, before: lastUse, slack: 3 * time.Second, timeout: 3 * time.Second,
		evidence: []string{"61", "GiB"},
	},
	{
		name: "hang-at-start", next: "py-spy", kind: "looks_hung", of: "mixtral-pretrain-48290", owner: "uid 1005", gpus: 8,
		onset: firstMetric("mixtral-pretrain"), slack: 5 * time.Second, timeout: 3 * time.Second,
		evidence: []string{"step"},
	},
	{
		name: "gpu-failed", next: "nvidia-smi", kind: "gpu_failed", of: "vit-pretrain-48301", owner: "uid 1006", gpus: 1,
		onset: firstFailed, slack: 3 * time.Second,
		evidence: []string{"failed", "XID 79"}, changed: []string{"attempt 2", "gpu-11"},
	},
}

// TestIncidents plays all incidents, and expects the page to name each of them
// and nothing else: what, since when, by what evidence, what changed before, and
// what to do next.
func TestIncidents(t *testing.T) {
	c := startCollector(t)
	generator := harness.StartGenerator(t, endpoints(t, c), harness.Workload{
		Seed: 7, Incidents: "all", Rate: 20, Ranks: 2, MetricsInterval: metricsInterval,
	})
	var state *view.State
	// seen is when the page first had each problem with its onset.
	seen := map[string]time.Time{}
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		var err error
		state, err = view.Read(t.Context(), c.Address(t, "exporters::ml_view"))
		require.NoError(t2, err)
		for _, need := range state.Needs {
			if key := need.Key + need.Since.String(); seen[key].IsZero() {
				seen[key] = state.Time
			}
		}
		var want, have []string
		for _, i := range incidents {
			want = append(want, i.kind+" "+i.of)
		}
		for _, need := range state.Needs {
			have = append(have, need.Kind+" "+subject(&need))
		}
		require.ElementsMatch(t2, want, have)
		for _, i := range incidents {
			i.check(t2, i.need(state))
		}
		at := slices.IndexFunc(state.Needs, func(n view.Need) bool { return n.Kind == "failing" })
		assert.Positive(t2, at)
		assert.Equal(t2, "tool_errors", state.Needs[at-1].Kind, "that the service fails follows from its tool")
		assert.Equal(t2, state.Needs[at-1].Key, state.Needs[at].Cause)
		// The GPUs that a run has left are free after a few readings.
		assert.Equal(t2, map[string]int{"looks_hung": 24, "slow": 8, "held_idle": 4, "failed": 1, "working": 10, "free": 7}, counted(state.Collector.GPUs))
	}, time.Minute, 200*time.Millisecond)
	sent := generator.Stop(t)

	for _, i := range incidents {
		onset, need := time.Unix(0, i.onset(sent.Spans, sent.Metrics)), i.need(state)
		from, to := onset.Add(-time.Second), onset.Add(i.slack)
		if i.before != nil {
			from = time.Unix(0, i.before(sent.Spans, sent.Metrics)).Add(-time.Millisecond)
		}
		if known := seen[need.Key+need.Since.String()].Add(-i.timeout); i.timeout > 0 && known.After(to) {
			to = known
		}
		assert.WithinRange(t, need.Since, from, to, i.name)
	}
}

// need returns the problem of the incident, which there must be.
func (i *incident) need(state *view.State) *view.Need {
	at := slices.IndexFunc(state.Needs, func(n view.Need) bool { return n.Kind == i.kind && subject(&n) == i.of })
	return &state.Needs[at]
}

// check compares what the page says of the incident.
func (i *incident) check(t require.TestingT, need *view.Need) {
	evidence := strings.Join(need.Evidence, "; ")
	for _, words := range i.evidence {
		assert.Contains(t, evidence, words, i.name)
	}
	var texts []string
	for _, change := range need.Before {
		texts = append(texts, change.Text)
	}
	for _, words := range i.changed {
		assert.Contains(t, strings.Join(texts, "; "), words, i.name)
	}
	assert.Contains(t, need.Next, i.next, i.name)
	assert.Equal(t, i.owner, need.Owner, i.name)
	assert.Len(t, need.GPUs, i.gpus, i.name)
	switch i.kind {
	case "slow":
		if assert.NotNil(t, need.Value) && assert.NotNil(t, need.Usual) {
			assert.InDelta(t, 1.6, *need.Value / *need.Usual, 0.1)
		}
	case "failing":
		if assert.NotNil(t, need.Value) {
			assert.InDelta(t, 0.12, *need.Value, 0.08, "of the last hundred requests")
		}
	}
}

// counted leaves out what no GPU does.
func counted(gpus map[string]int) map[string]int {
	of := map[string]int{}
	for activity, count := range gpus {
		if count > 0 {
			of[activity] = count
		}
	}
	return of
}

// subject is what a problem is of, as the list of incidents names it.
func subject(n *view.Need) string {
	host, _, _ := strings.Cut(n.Subject, ":")
	return cmp.Or(n.RunID, n.Service, host)
}

func lastSpan(service string) func([]*sentlog.Span, []*sentlog.Metric) int64 {
	return func(spans []*sentlog.Span, _ []*sentlog.Metric) (last int64) {
		for _, s := range spans {
			if s.Resource["service.name"] == service {
				last = max(last, s.EndUnixNano)
			}
		}
		return last
	}
}

func firstSpan(match func(*sentlog.Span) bool) func([]*sentlog.Span, []*sentlog.Metric) int64 {
	return func(spans []*sentlog.Span, _ []*sentlog.Metric) int64 {
		for _, s := range spans {
			if match(s) {
				return s.EndUnixNano
			}
		}
		return 0
	}
}

func firstMetric(service string) func([]*sentlog.Span, []*sentlog.Metric) int64 {
	return func(_ []*sentlog.Span, metrics []*sentlog.Metric) int64 {
		for _, m := range metrics {
			if m.Resource["service.name"] == service {
				return m.TimeUnixNano
			}
		}
		return 0
	}
}

// useOf returns the readings of the use of one of the held GPUs, in their order.
func useOf(metrics []*sentlog.Metric) (use []*sentlog.Metric) {
	for _, m := range metrics {
		if m.Name == "hw.gpu.utilization" && m.Attributes["host.name"] == "gpu-08" && m.Attributes["nvidia.gpu.index"] == int64(4) {
			use = append(use, m)
		}
	}
	return use
}

// firstIdle is when the held GPUs were first seen to do nothing.
func firstIdle(_ []*sentlog.Span, metrics []*sentlog.Metric) int64 {
	for _, m := range useOf(metrics) {
		if m.Value == 0 {
			return m.TimeUnixNano
		}
	}
	return 0
}

// firstFailed is when the driver first said that a GPU has failed.
func firstFailed(_ []*sentlog.Span, metrics []*sentlog.Metric) int64 {
	for _, m := range metrics {
		if m.Name == "hw.status" && m.Attributes["hw.state"] == "failed" && m.Value == 1 {
			return m.TimeUnixNano
		}
	}
	return 0
}

// lastUse is when they were last seen to work.
func lastUse(_ []*sentlog.Span, metrics []*sentlog.Metric) (last int64) {
	for _, m := range useOf(metrics) {
		if m.Value != 0 {
			last = m.TimeUnixNano
		}
	}
	return last
}

// TestHealthy shows that nothing needs anyone while all clients work, long enough
// for what is usual to be known.
func TestHealthy(t *testing.T) {
	c := startCollector(t)
	generator := harness.StartGenerator(t, endpoints(t, c), harness.Workload{
		Seed: 7, Scenarios: "all", Rate: 4, Ranks: 2, MetricsInterval: metricsInterval,
	})
	address := c.Address(t, "exporters::ml_view")
	var needs []view.Need
	require.EventuallyWithT(t, func(t2 *assert.CollectT) {
		state, err := view.Read(t.Context(), address)
		require.NoError(t2, err)
		needs = append(needs, state.Needs...)
		assert.True(t2, slices.ContainsFunc(state.Runs, func(r view.Run) bool { return r.StepTimeUsual != nil }))
	}, time.Minute, 200*time.Millisecond)
	assert.Empty(t, needs)
	generator.Stop(t)
}
