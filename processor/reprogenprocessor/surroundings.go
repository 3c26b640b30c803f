package reprogenprocessor

import (
	"slices"
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/gpustate"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/progress"
)

const (
	// maxGPUsTold is how many GPUs an artefact tells of.
	maxGPUsTold = 16
	// gpuWeight estimates the bytes that one of them takes in memory.
	gpuWeight = 2 << 10
	// xidEvent is the name of the gpu receiver's records.
	xidEvent = "nvidia.gpu.xid"
)

// aboutGPU lists, in lower case, what messages and classes of errors have that
// GPUs have to do with, and aboutRanks those of ranks that wait for each other.
var (
	aboutGPU   = []string{"cuda", "gpu", "nccl", "out of memory", "outofmemory", "hip error", "xla", "resource_exhausted", "accelerator"}
	aboutRanks = []string{"nccl", "gloo", "collective", "distbackenderror", "distnetworkerror", "watchdog", "timed out", "timeout"}
)

func tells(f *failure.Failure, words []string) bool {
	text := strings.ToLower(f.Error.Type + " " + f.Error.Message)
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// lookAround notes how the GPUs were when a failure happened. It is asked when
// the failure is taken in: later, its process is gone from them.
func (r *recorder) lookAround(n *incident, l *located) {
	f := n.failure
	ofRanks := f.Trigger == "timeout" || f.Trigger == "crash" || tells(f, aboutRanks)
	if !ofRanks && f.Trigger != "oom" && !tells(f, aboutGPU) {
		return
	}
	c, at := newCopier(), n.at
	if at.IsZero() {
		at = r.now()
	}
	maps := [...]pcommon.Map{l.span.Attributes(), l.resource.Attributes()}
	f.Around = gpustate.Query{
		Host: c.text(firstText(l.resource.Attributes(), mlattr.HostName), maxID), Run: n.run, Rank: n.rank,
		Service: f.Service, At: at, Whole: ofRanks, Limit: maxGPUsTold,
	}
	f.Around.PID, _ = intOf(maps[:], "process.pid")
	if world, ok := intOf(maps[:], mlattr.WorldSize); ok && world > 0 && world < 1<<20 {
		f.WorldSize = int(world)
	}
	f.GPUs = r.gpus.At(f.Around)
	f.Weight += gpuWeight * len(f.GPUs)
}

// around adds to a failure that is to be written what came since: the GPUs'
// errors, and the last steps of the ranks that hang.
func (r *recorder) around(f *failure.Failure) {
	if f.Around.Limit == 0 {
		return
	}
	if len(f.GPUs) == 0 {
		f.GPUs = r.gpus.At(f.Around)
	} else {
		f.GPUs = slices.Clone(f.GPUs)
		for i := range f.GPUs {
			f.GPUs[i].XIDs = r.gpus.XIDs(f.GPUs[i].Host, f.GPUs[i].ID, f.Around.At)
		}
	}
	if f.Around.Whole {
		f.Steps = r.steps.Of(f.Around.Run)
	}
	if f.WorldSize == 0 {
		for _, s := range f.Ancestors {
			f.WorldSize = max(f.WorldSize, worldIn(s.Attributes))
		}
	}
}

func worldIn(attributes jsontree.Object) int {
	v, _ := attributes.Lookup(mlattr.WorldSize)
	number, _ := v.(jsontree.Number)
	n, err := strconv.Atoi(string(number))
	if err != nil || n < 0 || n >= 1<<20 {
		return 0
	}
	return n
}

// noteStep notes where a rank of a run is.
func (r *recorder) noteStep(span ptrace.Span, resource pcommon.Resource) {
	l := located{span: span, resource: resource}
	run, rank := jobOf(&l)
	if run == "" || rank == "" {
		return
	}
	maps := [...]pcommon.Map{span.Attributes(), resource.Attributes()}
	s := progress.Step{Rank: rank, Epoch: -1, Span: span.Name(), Host: firstText(resource.Attributes(), mlattr.HostName),
		At: span.EndTimestamp().AsTime()}
	s.Span, s.Host = cut(s.Span, maxID), cut(s.Host, maxID)
	var ok bool
	if s.Step, ok = intOf(maps[:1], mlattr.Step); !ok {
		return
	}
	if epoch, ok := intOf(maps[:], mlattr.Epoch); ok && epoch >= 0 {
		s.Epoch = epoch
	}
	r.steps.Note(run, s)
}

// noteXID notes an error that the gpu receiver tells of.
func (r *recorder) noteXID(record plog.LogRecord, resource pcommon.Map) {
	maps := [...]pcommon.Map{record.Attributes(), resource}
	code, ok := intOf(maps[:1], "nvidia.gpu.xid.code")
	if !ok {
		return
	}
	at := record.Timestamp()
	if at == 0 {
		at = record.ObservedTimestamp()
	}
	text := "XID " + strconv.FormatInt(code, 10)
	if body, _ := mlattr.Text(record.Body(), maxValueBytes); strings.HasPrefix(body, text) {
		text = body
	}
	r.gpus.AddXID(oneOf(maps[:], mlattr.HostName), oneOf(maps[:], mlattr.HardwareID),
		gpustate.XID{At: at.AsTime(), Code: code, Text: text})
}
