// Package surroundings remembers what was around a failure: how the GPUs were,
// and which step each rank of a run had reached.
package surroundings

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/attr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/detect"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gpustate"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/incident"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

const (
	// maxGPUs is how many GPUs an artifact lists.
	maxGPUs = 16
	// gpuWeight estimates the bytes that one of them takes in memory.
	gpuWeight = 2 << 10
	// maxWorldSize is the first number that is not a number of ranks.
	maxWorldSize = 1 << 20
)

// gpuWords are, in lower case, what messages and classes of errors contain that
// concern GPUs, and rankWords those of ranks that wait for each other.
var (
	gpuWords  = []string{"cuda", "gpu", "nccl", "out of memory", "outofmemory", "hip error", "xla", "resource_exhausted", "accelerator"}
	rankWords = []string{"nccl", "gloo", "collective", "distbackenderror", "distnetworkerror", "watchdog", "timed out", "timeout"}
)

func contains(f *failure.Failure, words []string) bool {
	text := strings.ToLower(f.Error.Type + " " + f.Error.Message)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// View is what is remembered. It is safe for concurrent use.
type View struct {
	gpus  *gpustate.State
	steps *board
}

// New returns an empty View.
func New() *View { return &View{gpus: gpustate.New(), steps: newBoard()} }

// AddTo adds to a failure how the GPUs were when it happened. It is called when
// the failure is taken in: later, its process has left them.
func (m *View) AddTo(i *incident.Incident, c *detect.Candidate, now time.Time) {
	f := i.Failure
	ofRanks := f.Trigger == "timeout" || f.Trigger == "crash" || contains(f, rankWords)
	if !ofRanks && f.Trigger != "oom" && !contains(f, gpuWords) {
		return
	}
	at := i.At
	if at.IsZero() {
		at = now
	}
	maps := [...]pcommon.Map{c.Span.Attributes(), c.Resource.Attributes()}
	copier := snapshot.New()
	f.Around = gpustate.Query{
		Host: copier.Text(attr.Text(c.Resource.Attributes(), mlattr.HostName), incident.MaxID),
		// The points of GPUs have the run that ml_enrich wrote, inferred or not.
		Run:  cmp.Or(copier.Text(attr.TextIn(maps[:], mlattr.RunID), incident.MaxID), i.Run),
		Rank: i.Rank, At: at, Whole: ofRanks, Limit: maxGPUs,
	}
	if world, ok := attr.IntIn(maps[:], mlattr.WorldSize); ok && world > 0 && world < maxWorldSize {
		f.WorldSize = int(world)
	}
	f.GPUs = m.gpus.At(f.Around)
	f.Weight += gpuWeight * len(f.GPUs)
}

// Complete adds to a failure that is to be written what came since: the GPUs'
// errors, and the last steps of the ranks that hang.
func (m *View) Complete(f *failure.Failure) {
	if f.Around.Limit == 0 {
		return
	}
	if len(f.GPUs) == 0 {
		f.GPUs = m.gpus.At(f.Around)
	} else {
		f.GPUs = slices.Clone(f.GPUs)
		for i := range f.GPUs {
			f.GPUs[i].XIDs = m.gpus.XIDs(f.GPUs[i].Host, f.GPUs[i].ID, f.Around.At)
		}
	}
	if f.Around.Whole {
		f.Steps = m.steps.of(f.Run)
	}
	if f.WorldSize == 0 {
		for _, s := range f.Ancestors {
			f.WorldSize = max(f.WorldSize, worldSizeIn(s.Attributes))
		}
	}
}

func worldSizeIn(attributes jsontree.Object) int {
	v, _ := attributes.Lookup(mlattr.WorldSize)
	number, _ := v.(jsontree.Number)
	n, err := strconv.Atoi(string(number))
	if err != nil || n < 0 || n >= maxWorldSize {
		return 0
	}
	return n
}

// NoteStep notes which step a rank of a run has reached.
func (m *View) NoteStep(span ptrace.Span, resource pcommon.Resource) {
	maps := [...]pcommon.Map{span.Attributes(), resource.Attributes()}
	run, rank := incident.RunOf(maps[0], maps[1])
	if run == "" || rank == "" {
		return
	}
	s := failure.Step{Rank: rank, Epoch: -1, Span: attr.Cut(span.Name(), incident.MaxID),
		Host: attr.Cut(attr.Text(maps[1], mlattr.HostName), incident.MaxID), At: span.EndTimestamp().AsTime()}
	var ok bool
	if s.Step, ok = attr.IntIn(maps[:1], mlattr.Step); !ok {
		return
	}
	if epoch, ok := attr.IntIn(maps[:], mlattr.Epoch); ok && epoch >= 0 {
		s.Epoch = jsontree.Known(epoch)
	}
	m.steps.note(run, s)
}

// NoteXID notes an error of a GPU.
func (m *View) NoteXID(record plog.LogRecord, resource pcommon.Map) {
	maps := [...]pcommon.Map{record.Attributes(), resource}
	code, ok := attr.IntIn(maps[:1], mlattr.GPUXIDCode)
	if !ok {
		return
	}
	at := record.Timestamp()
	if at == 0 {
		at = record.ObservedTimestamp()
	}
	text := "XID " + strconv.FormatInt(code, 10)
	if body, _ := mlattr.Text(record.Body(), snapshot.MaxValue); strings.HasPrefix(body, text) {
		text = body
	}
	m.gpus.AddXID(attr.TextIn(maps[:], mlattr.HostName), attr.TextIn(maps[:], mlattr.HardwareID),
		gpustate.XID{At: at.AsTime(), Code: code, Text: text})
}

// maxGPUPoints is how many points of a batch are read; a host with eight GPUs has
// some hundred.
const maxGPUPoints = 8192

// AddMetrics reads the GPUs' metrics of a batch.
func (m *View) AddMetrics(md pmetric.Metrics, now time.Time) {
	var points []gpustate.Point
	for _, rm := range md.ResourceMetrics().All() {
		var device *gpupoint.Device
		for _, sm := range rm.ScopeMetrics().All() {
			for _, one := range sm.Metrics().All() {
				if !gpustate.Reads(gpupoint.QuantityOf(one.Name())) {
					continue
				}
				if device == nil {
					read := gpupoint.DeviceOf(rm.Resource().Attributes())
					device = &read
				}
				for p, attrs := range gpupoint.Points(one, device) {
					if len(points) == maxGPUPoints {
						break
					}
					points = append(points, gpustate.Point{Point: *p, Workload: workloadOf(attrs)})
				}
			}
		}
	}
	if len(points) > 0 {
		m.gpus.Apply(points, now)
	}
}

// workloadOf reads the workload of a point, as the gpu receiver and ml_enrich
// write it.
func workloadOf(attributes pcommon.Map) gpustate.Workload {
	run, h := gpupoint.HolderOf(attributes)
	w := gpustate.Workload{
		Run: run, Join: attr.Text(attributes, mlattr.GPUJoin), Service: h.Service, Rank: h.Rank,
		Job: cmp.Or(attr.Text(attributes, mlattr.JobID), h.Job), User: h.UserID, Namespace: h.Namespace, Pod: h.Pod,
	}
	w.PID, _ = attr.IntIn([]pcommon.Map{attributes}, "process.pid")
	return w
}
