package origin

import (
	"maps"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
)

// nobody writes any file.
func nobody(string) (workload.Process, bool) { return workload.Process{}, false }

func of(t *testing.T, path string, attrs map[string]any) *Origin {
	t.Helper()
	resource := pcommon.NewMap()
	require.NoError(t, resource.FromRaw(attrs))
	record := pcommon.NewMap()
	record.PutStr(FilePath, path)
	return readOrigin(resource, record, nobody)
}

func TestPaths(t *testing.T) {
	id := "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	pod := map[string]any{
		"k8s.namespace.name": "ml", "k8s.pod.name": "llama-worker-3", "k8s.pod.uid": "8a7b", "k8s.container.name": "pytorch", "k8s.container.restart_count": "2",
		"service.name": "pytorch", "ml.run.id": "llama-4b96cdc2", "ml.run.inferred": true,
	}
	for path, want := range map[string]map[string]any{
		"": {},
		"/var/log/pods/ml_llama-worker-3_8a7b/pytorch/2.log":                 pod,
		"/var/log/pods/ml_llama-worker-3_8a7b/pytorch/2.log.20260301-120000": pod,
		"/var/log/containers/llama-0_ml_pytorch-" + id + ".log": {
			"k8s.namespace.name": "ml", "k8s.pod.name": "llama-0", "k8s.container.name": "pytorch", "container.id": id,
			"service.name": "pytorch", "ml.run.id": "llama-4b96cdc2", "ml.run.inferred": true,
		},
		"/var/lib/docker/containers/" + id + "/" + id + "-json.log": {"container.id": id, "ml.run.id": "0123456789ab", "ml.run.inferred": true},
		"/data/" + id + ".log":               {"ml.run.id": id + "-27fe33fb", "ml.run.inferred": true},
		"/data/pods/a_b_c/d/1.log/train.log": {"ml.run.id": "train-ae760e8c", "ml.run.inferred": true},
		"/logs/llama/attempt_1/5/stderr.log": {"ml.run.id": "llama-45233e1b", "ml.run.inferred": true},
		"/home/ann/slurm-494583.out":         {"slurm.job.id": "494583"},
		"/home/ann/logs/llama-494583.err":    {"slurm.job.id": "494583"},
		"/data/exp7/train.log":               {"ml.run.id": "train-2d7aa940", "ml.run.inferred": true},
		"/data/exp7/train.err":               {"ml.run.id": "train-2d7aa940", "ml.run.inferred": true},
		"/data/exp7/train_rank3.log":         {"ml.run.id": "train-2d7aa940", "ml.run.inferred": true, "ml.rank.global": int64(3)},
	} {
		assert.Equal(t, want, of(t, path, nil).Resource.AsRaw(), path)
	}
}

// What the operator container of file_log tells of a file stays.
func TestPod(t *testing.T) {
	pod := map[string]any{"k8s.namespace.name": "ml", "k8s.pod.name": "llama-worker-3", "k8s.pod.uid": "8a7b", "k8s.container.name": "pytorch", "k8s.container.restart_count": "2"}
	want := maps.Clone(pod)
	maps.Copy(want, map[string]any{"service.name": "pytorch", "ml.run.id": "llama-4b96cdc2", "ml.run.inferred": true})
	assert.Equal(t, want, of(t, "/var/log/pods/ml_llama-worker-3_8a7b/pytorch/2.log", pod).Resource.AsRaw())
}

// Both streams of a program have one owner, and other programs have others.
func TestOwner(t *testing.T) {
	out, err := of(t, "/data/a.out", nil), of(t, "/data/a.err", nil)
	assert.Equal(t, out.Owner, err.Owner)
	assert.NotEqual(t, out.Owner, of(t, "/data/b.out", nil).Owner)
	assert.NotEqual(t, out.Owner, of(t, "/data/a.out", map[string]any{"host.name": "n2"}).Owner)
	assert.NotEqual(t, of(t, "/data/a_rank0.log", nil).Owner, of(t, "/data/a_rank1.log", nil).Owner)
}

// A run that the resource names stays, and all pods of a job are one run.
func TestRun(t *testing.T) {
	for _, attrs := range []map[string]any{{"ml.run.id": "r1"}, {"TORCHELASTIC_RUN_ID": "r1"}, {"slurm.job.id": "42"}, {"k8s.job.uid": "u1", "k8s.pod.name": "x-abcde"}} {
		_, set := of(t, "/data/a.log", attrs).Resource.Get("ml.run.inferred")
		assert.False(t, set, "%v", attrs)
	}
	for pod, want := range map[string]string{
		"llama-worker-3": "llama", "llama-master-0": "llama", "llama-0": "llama", "llama-node-0-1-x7k2p": "llama", "llama-7b-x7k2p": "llama-7b",
		"train": "train", "train-workers-0-0-bcdfg": "train-workers", "exp-2-worker-11": "exp",
	} {
		assert.Equal(t, want, jobOf(pod), pod)
	}
}

func TestUser(t *testing.T) {
	record := pcommon.NewMap()
	record.PutStr(FileOwner, "ann")
	user, _ := readOrigin(pcommon.NewMap(), record, nobody).Resource.Get("user.name")
	assert.Equal(t, "ann", user.Str())
}

// What a resource has without bounds is not kept.
func TestBounds(t *testing.T) {
	attrs := map[string]any{"list": []any{1}, "long": string(make([]byte, 1000))}
	for i := range 1000 {
		attrs[string(rune('a'+i%26))+string(rune('a'+i/26))] = "x"
	}
	assert.LessOrEqual(t, of(t, "/data/a.log", attrs).Resource.Len(), maxAttributes+2)
}
