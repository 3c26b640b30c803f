package text_test

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

var now = time.Date(2026, 11, 20, 6, 42, 10, 0, time.UTC)

// ago returns the time a duration before now.
func ago(d time.Duration) *time.Time { return new(now.Add(-d)) }

const gib = 1 << 30

// incident is the state of a fleet in which several things are wrong.
func incident() *api.State {
	version := api.Change{Time: *ago(25 * time.Minute), Kind: "version", Service: "support-agent", To: "1.8.2", Text: "version 1.8.2 (was 1.8.1)"}
	attempt := api.Change{Time: *ago(40 * time.Minute), Kind: "attempt", Service: "qwen-dpo", RunID: "dpo-7", To: "2", Text: "attempt 2 on gpu-05"}
	return &api.State{
		Version: api.SchemaVersion, Time: now,
		Collector: api.Collector{
			Version: "0.9.0", Started: *ago(time.Hour), DataTime: ago(2 * time.Second), Interval: 2, Hosts: 8, HostsReporting: 8,
			GPUs: map[string]int{"working": 20, "looks_hung": 32, "slow": 8, "held_idle": 4}, Simulated: true,
			Hidden: map[string]int{"gpus": 60},
		},
		Needs: []api.Need{
			{Key: "1", Kind: mlattr.ProblemLooksHung, Severity: "page", Urgency: 1, Since: *ago(210 * time.Minute), Run: "r1", RunID: "8f14e45fceea167a", Service: "llama-sft", Job: "48211", Owner: "user1",
				Subject: "llama-sft", Evidence: []string{"step 18411", "rank 17 gpu-03:1 last data_load, 31 others forward", "100 % at 210 W", "checkpoint 02:50"},
				GPUHours: new(128.0), Next: "look at rank 17 first", Command: "ssh gpu-03 py-spy dump --pid 4711"},
			{Key: "3", Kind: mlattr.ProblemFailing, Severity: "page", Urgency: 2, Since: *ago(22 * time.Minute), Service: "support-agent", Owner: "team-x", Subject: "support-agent",
				Value: new(0.12), Usual: new(0.004), Unit: "1", Evidence: []string{"was 0.4 %", "ToolTimeout 41 of 340", "only version 1.8.2"}, Before: []api.Change{version}},
			{Key: "2", Kind: mlattr.ProblemSlow, Severity: "ticket", Urgency: 3, Since: *ago(37 * time.Minute), Run: "r2", RunID: "dpo-7", Service: "qwen-dpo", Job: "48260", Owner: "user2",
				Subject: "qwen-dpo", Simulated: true, Value: new(3.1), Usual: new(1.9), Unit: "s",
				Evidence: []string{"1.9 → 3.1 s/step", "data_load 0.2 → 1.4 s on all ranks"}, Before: []api.Change{attempt}},
			{Key: "4", Kind: mlattr.ProblemHeldIdle, Severity: "ticket", Urgency: 4, Since: *ago(90 * time.Minute), Owner: "user3", Job: "jupyter", Subject: "gpu-08: GPU 4-7",
				Evidence: []string{"4 × 61 GiB, 0 % for 1.5 h"}, GPUHours: new(6.0)},
			{Key: "5", Kind: mlattr.ProblemGPUFailed, Severity: "page", Urgency: 5, Since: *ago(time.Hour), NoEvidenceSince: ago(14 * time.Minute), Owner: "user5", Job: "slurm job 815", Subject: "gpu-06: GPU 3",
				Evidence: []string{"XID 79"}, GPUHours: new(0.77)},
		},
		Resolved: []api.Need{
			{Key: "6", Kind: mlattr.ProblemSlow, Severity: "ticket", Since: *ago(5 * time.Hour), Ended: ago(4 * time.Hour), EndReason: "over", RunID: "ft-12", Service: "bert-ft", Owner: "user4", Subject: "bert-ft",
				Value: new(0.8), Usual: new(0.4), Unit: "s", Evidence: []string{"0.8 s a step, usually 0.4 (+100 %)"}},
			{Key: "7", Kind: mlattr.ProblemFailing, Severity: "page", Since: *ago(20 * time.Hour), Ended: ago(19 * time.Hour), EndReason: "no_evidence", Service: "batch", Subject: "batch",
				Value: new(0.5), Unit: "1", Evidence: []string{"6 of the last 12 requests to models failed"}},
		},
		Runs: []api.Run{
			{Key: "r3", ID: "bert-ft-2026-11-20T05", Service: "bert-ft", Owner: "user4", Job: "48255", State: "running", Ranks: 4,
				Steps: new(9210.0), StepTime: new(0.41), StepTimeUsual: new(0.406), TokenRate: new(88_123.0), SampleRate: new(172.0), Loss: new(0.2345),
				Goodput: new(0.953), Bound: "gpu", GPUs: new(4.0), GPUUtilization: new(0.97), Attempts: new(1.0), LastStep: ago(time.Second), LastCheckpoint: ago(6 * time.Minute)},
			{Key: "r1", ID: "8f14e45fceea167a", Service: "llama-sft", Owner: "user1", Job: "48211", State: "stalled", Needs: []string{mlattr.ProblemLooksHung}, Ranks: 32,
				Steps: new(18_411.0), StepTime: new(2.2), StepTimeUsual: new(2.2), Loss: new(1.9), GPUs: new(32.0), GPUUtilization: new(1.0),
				Attempts: new(1.0), LastStep: ago(210 * time.Minute), LastCheckpoint: ago(232 * time.Minute)},
			{Key: "r2", ID: "dpo-7", Service: "qwen-dpo", Owner: "user2", Job: "48260", State: "running", Needs: []string{mlattr.ProblemSlow}, Ranks: 8, Simulated: true,
				Steps: new(730.0), StepTime: new(3.1), StepTimeUsual: new(1.9), TokenRate: new(10_300.0), Bound: "input", GPUs: new(8.0), GPUUtilization: new(0.44),
				Attempts: new(2.0), LastStep: ago(3 * time.Second), Errors: new(1.0)},
		},
		GPUs: []api.GPU{
			{Key: "g1", ID: "GPU-7f0c", Index: "1", Host: "gpu-03", Name: "NVIDIA H100 80GB HBM3", Activity: mlattr.ProblemLooksHung, Utilization: new(1.0),
				MemoryUsed: new(61.5 * gib), MemoryLimit: new(80.0 * gib), MemoryUnattributed: new(0.4 * gib), Power: new(210.0), PowerLimit: new(700.0), Temperature: new(51.0),
				Health: "ok", Holders: []api.Holder{{Run: "r1", Service: "llama-sft", Rank: "17", Owner: "user1", Memory: new(61.1 * gib)}}},
			{Key: "g2", ID: "GPU-7f0d", Index: "4", Host: "gpu-08", Name: "NVIDIA H100 80GB HBM3", Activity: mlattr.ProblemHeldIdle, Utilization: new(0.0), Simulated: true,
				MemoryUsed: new(61.0 * gib), MemoryLimit: new(80.0 * gib), Power: new(72.0), PowerLimit: new(700.0), Temperature: new(34.0), Health: "degraded",
				XID: &api.XID{Code: "63", Time: *ago(3 * time.Hour)}, Throttle: []string{"hw_thermal", "power_cap"}, IdleSince: ago(90 * time.Minute), HeldIdle: true,
				Holders: []api.Holder{{Name: "user 1003", Owner: "user3", Memory: new(61.0 * gib)}}},
		},
		Failures: []api.Failure{
			{Key: "f2", Kind: "context", Class: "ToolTimeout", Message: "no answer within 30 s", Service: "support-agent", Version: "1.8.2", Count: 41,
				FirstSeen: ago(22 * time.Minute), LastSeen: ago(4 * time.Second), Command: "python3 /var/lib/otelcol-ml/reproductions/0123456789abcdef/20261120T064206Z-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331/repro.py"},
			{Key: "f1", Kind: "python", Class: "ValueError", Message: "could not broadcast input array from shape (3,) into shape (4,)", Service: "bert-ft",
				RunID: "bert-ft-2026-11-20T05", Version: "3fa1c2", Count: 3, Variants: 2, FirstSeen: ago(5 * time.Hour), LastSeen: ago(12 * time.Minute),
				Command: "python3 /var/lib/otelcol-ml/reproductions/fedcba9876543210/20261120T063010Z-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7/repro.py",
				Replays: true, Requires: []string{"Python module numpy"}},
		},
		Changes: []api.Change{version, attempt},
		Models: []api.Model{{Key: "m1", Service: "support-agent", Model: "qwen3-32b", Role: "chat", Side: "client", RequestRate: new(0.31), InputTokens: new(1e6), CachedTokens: new(4e5),
			InputTokenRate: new(820.0), OutputTokenRate: new(64.2), Errors: map[string]float64{"ToolTimeout": 41, "429": 2}, FirstToken: &api.Quantiles{P50: 0.21, P95: 0.9, Count: 340},
			Duration: &api.Quantiles{P50: 3.4, P95: 31, Count: 340}, Decode: &api.Quantiles{P50: 41, P95: 55, Count: 300}, LengthStops: new(7.0), ErrorRatio: new(0.12), ErrorRatioUsual: new(0.004)}},
		Pools: []api.Pool{{Key: "p1", Service: "worker", Pool: "default", Size: new(8.0), Busy: new(7.0), Idle: new(1.0), Queue: new(12.0), Crashes: new(1.0)}},
		Calls: []api.Call{
			{Key: "c1", Time: *ago(3 * time.Second), Service: "worker", Library: "numpy", Function: "linalg.inv", Duration: 0.0123, Queue: new(0.004), Serialize: new(0.0007)},
			{Key: "c2", Time: *ago(9 * time.Second), Service: "worker", Library: "torch", Function: "load", Duration: 83, Error: "OSError", Message: "No such file or directory"},
		},
		Missing: []api.Missing{
			{Key: "x1", Kind: "step_tokens", What: "tokens/s of 1 run", Why: "unknown: tokens per step not set", Count: 1, Fix: `span.set_attribute("ml.tokens", n)`},
			{Key: "x2", Kind: "attribution", What: "who holds 4 GPUs", Why: "the collector may not read other users' processes: it needs CAP_SYS_PTRACE on the hosts, or the pod resources socket of Kubernetes"},
		},
	}
}
