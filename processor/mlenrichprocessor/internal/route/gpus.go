package route

import (
	"cmp"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/processor/mlenrichprocessor/internal/cache"
)

const (
	// maxGPUs is how many GPUs are remembered that a run has held.
	maxGPUs = 4096
	// gpuAge is how long a GPU is remembered after its last reading.
	gpuAge = 15 * time.Minute
)

// GPUs remembers whose route the readings and errors of each GPU take: that of the
// run that holds its memory, so that the gateway of a run has all that is known of its
// GPUs. A GPU that its run has released keeps the route until another run holds it:
// the gateway sees the release, and names the run if the GPU failed under it. If
// several runs hold a GPU, the one that has the route keeps it, and among new ones the
// first in alphabetical order gets it. It is safe for concurrent use.
type GPUs struct{ cache.Locked[gpu, string] }

// gpu identifies a GPU or a MIG device.
type gpu struct{ host, id string }

// NewGPUs returns a GPUs that knows of none.
func NewGPUs(now func() time.Time) *GPUs {
	return &GPUs{cache.NewLocked[gpu, string]("gpus", now, maxGPUs, gpuAge)}
}

// run returns the run whose route a GPU has, or "".
func (g *GPUs) run(of gpu) string {
	now := g.Lock()
	defer g.Unlock()
	if run := g.All.Find(of, now); run != nil {
		return *run
	}
	return ""
}

// give gives a GPU the route of a run.
func (g *GPUs) give(of gpu, run string) {
	now := g.Lock()
	defer g.Unlock()
	*g.All.Ensure(gpu{strings.Clone(of.host), strings.Clone(of.id)}, now) = strings.Clone(run)
}

// holders are the runs that hold the memory of a GPU by one request.
type holders struct {
	// first is the first of them in alphabetical order.
	first string
	// stays reports whether the run that has the route is among them.
	stays bool
}

// read notes which runs hold GPUs by the readings of a request.
func (g *GPUs) read(md pmetric.Metrics) {
	var held map[gpu]holders
	for _, rm := range md.ResourceMetrics().All() {
		resource := rm.Resource().Attributes()
		if _, routed := resource.Get(mlattr.Route); routed {
			continue
		}
		for _, sm := range rm.ScopeMetrics().All() {
			for _, m := range sm.Metrics().All() {
				if m.Name() == mlattr.GPUWorkloadMemory {
					held = g.hold(held, mlattr.NumberPoints(m), resource)
				}
			}
		}
	}
	for of, h := range held {
		if !h.stays {
			g.give(of, h.first)
		}
	}
}

// hold adds the runs of points that hold memory.
func (g *GPUs) hold(held map[gpu]holders, points pmetric.NumberDataPointSlice, resource pcommon.Map) map[gpu]holders {
	own := runOf(resource)
	for _, point := range points.All() {
		of, run := gpuOf(point.Attributes(), resource), cmp.Or(runOf(point.Attributes()), own)
		if size, ok := mlattr.Number(point); of.id == "" || run == "" || !ok || size <= 0 {
			continue
		}
		h := held[of]
		if h.first == "" || run < h.first {
			h.first = run
		}
		h.stays = h.stays || run == g.run(of)
		mlattr.Put(&held, of, h)
	}
	return held
}

// gpuOf returns the GPU that a point or a record is about; its id is "" if there is
// none.
func gpuOf(attrs, resource pcommon.Map) gpu {
	return gpu{
		host: cmp.Or(mlattr.IDAt(attrs, mlattr.HostName), mlattr.IDAt(resource, mlattr.HostName)),
		id:   cmp.Or(mlattr.IDAt(attrs, mlattr.HardwareID), mlattr.IDAt(resource, mlattr.HardwareID)),
	}
}

// ofGPU reports whether the points of a metric may be about a GPU.
func ofGPU(m pmetric.Metric) bool {
	return strings.HasPrefix(m.Name(), "hw.") || strings.HasPrefix(m.Name(), "nvidia.")
}
