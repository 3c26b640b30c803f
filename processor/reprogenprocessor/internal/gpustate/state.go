// Package gpustate remembers the last readings of GPUs, so that a failure is shown with
// the state of the GPU that its process was on.
package gpustate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// The bounds of a State. The least recently read GPU makes room.
const (
	maxGPUs     = 1024
	maxReadings = 6
	// maxListed is the number of workloads, and of reasons for low clocks, of a reading.
	maxListed = 16
	// maxBytes is what all readings take together.
	maxBytes = 16 << 20
	// maxPoints is how many points of a batch are read; a host with eight GPUs has some
	// hundred.
	maxPoints = 8192
	// maxAge is how old a reading may be to be shown with a failure, and maxOwn how many
	// GPUs of a process are shown.
	maxAge = 10 * time.Minute
	maxOwn = 16
)

// unknown is a quantity that was not read.
const unknown = -1

// use is a workload with the memory that it has, in bytes. join is the rule by which
// ml_enrich joined it to its run, "" where the workload names the run itself.
type use struct {
	run, join string
	gpupoint.Holder
	memory float64
}

// reading is a GPU at one moment. Memory is in bytes.
type reading struct {
	at                       time.Time
	used, limit, utilization float64
	status                   string
	fabric                   float64
	throttled                []string
	uses                     []use
	more                     bool // there are further workloads
}

type key struct{ host, id string }

// gpu is what is kept of one GPU.
type gpu struct {
	key
	index    string
	replayed bool
	readings []reading // the newest last
	bytes    int64
}

// State is safe for concurrent use.
type State struct {
	mu    sync.Mutex
	gpus  *simplelru.LRU[key, *gpu]
	bytes int64
}

// New returns an empty State.
func New() *State {
	s := &State{}
	s.gpus, _ = simplelru.NewLRU(maxGPUs, func(_ key, g *gpu) { s.bytes -= g.bytes }) // maxGPUs is positive
	return s
}

// Add reads the GPUs' metrics of a batch. Points of one moment belong together. Those
// from a future that now is far from are left out: they would hide all that follow.
func (s *State) Add(md pmetric.Metrics, now time.Time) {
	latest, left := pcommon.NewTimestampFromTime(now.Add(maxAge)), maxPoints
	for _, rm := range md.ResourceMetrics().All() {
		var device *gpupoint.Device
		for _, sm := range rm.ScopeMetrics().All() {
			for _, metric := range sm.Metrics().All() {
				if !reads[gpupoint.QuantityOf(metric.Name())] {
					continue
				}
				if device == nil {
					read := gpupoint.DeviceOf(rm.Resource().Attributes())
					device = &read
				}
				for p, attributes := range gpupoint.Points(metric, device) {
					if left--; left < 0 {
						return
					}
					if p.At > 0 && p.At <= latest {
						s.add(p, attributes)
					}
				}
			}
		}
	}
}

// reads are the quantities that may show the cause of a failure.
var reads = map[gpupoint.Quantity]bool{
	gpupoint.MemoryUsed: true, gpupoint.MemoryLimit: true, gpupoint.Utilization: true,
	gpupoint.Status: true, gpupoint.Throttle: true, gpupoint.WorkloadMemory: true, gpupoint.Fabric: true,
}

func (s *State) add(p *gpupoint.Point, attributes pcommon.Map) {
	if p.ID == "" || p.Value != p.Value {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g, ok := s.gpus.Get(key{p.Host, p.ID})
	if !ok {
		g = &gpu{key: key{strings.Clone(p.Host), strings.Clone(p.ID)}}
		s.gpus.Add(g.key, g)
	}
	if g.index != p.Index {
		g.index = strings.Clone(p.Index)
	}
	g.replayed = p.Replayed()
	before := g.bytes
	g.add(p, attributes)
	s.bytes += g.bytes - before
	for s.bytes > maxBytes && s.gpus.Len() > 1 {
		s.gpus.RemoveOldest()
	}
}

// add puts a point into the last reading, or into a new one if it is later. One that is
// earlier is too late.
func (g *gpu) add(p *gpupoint.Point, attributes pcommon.Map) {
	n := len(g.readings)
	switch at := p.At.AsTime(); {
	case n == 0 || at.After(g.readings[n-1].at):
		g.readings = shared.AppendNewest(g.readings, reading{at: at, used: unknown, limit: unknown, utilization: unknown}, maxReadings)
		g.weigh()
	case at.Before(g.readings[n-1].at):
		return
	}
	r := &g.readings[len(g.readings)-1]
	switch p.Quantity {
	case gpupoint.MemoryUsed:
		r.used = p.Value
	case gpupoint.MemoryLimit:
		r.limit = p.Value
	case gpupoint.Utilization:
		r.utilization = p.Value
	case gpupoint.Fabric:
		r.fabric = p.Value
	case gpupoint.Status:
		if p.Value == 1 {
			r.status = nameOf(p)
		}
	case gpupoint.Throttle:
		if p.Value == 1 && len(r.throttled) < maxListed && !slices.Contains(r.throttled, p.Name) {
			r.throttled = append(r.throttled, nameOf(p))
			g.weigh()
		}
	case gpupoint.WorkloadMemory:
		u := useOf(p.Value, attributes)
		switch i := slices.IndexFunc(r.uses, func(known use) bool { return known.isOf(&u) }); {
		case i >= 0:
			r.uses[i] = u
		case len(r.uses) == maxListed:
			r.more = true
		default:
			r.uses = append(r.uses, u)
			g.weigh()
		}
	}
}

// nameOf returns a copy of the state or reason that a point names.
func nameOf(p *gpupoint.Point) string {
	return strings.ToValidUTF8(strings.Clone(mlattr.CutText(p.Name, mlattr.MaxText)), "")
}

// useOf reads the workload of a point, as the gpu receiver and ml_enrich write it.
func useOf(memory float64, attributes pcommon.Map) use {
	run, holder := gpupoint.HolderOf(attributes)
	return use{run: strings.Clone(run), join: strings.Clone(mlattr.IDAt(attributes, mlattr.GPUJoin)), Holder: holder.Clone(), memory: memory}
}

// isOf reports whether two uses are of one workload.
func (u use) isOf(other *use) bool {
	u.memory = other.memory
	return u == *other
}

// weigh estimates what the GPU takes in memory.
func (g *gpu) weigh() {
	const each = 256
	g.bytes = each
	for i := range g.readings {
		r := &g.readings[i]
		g.bytes += each + int64(len(r.throttled))*mlattr.MaxText
		for j := range r.uses {
			u := &r.uses[j]
			g.bytes += each + int64(len(u.run)+len(u.join))
			for _, text := range u.Texts() {
				g.bytes += int64(len(*text))
			}
		}
	}
}

// Own returns a line for each GPU that the process of a run and rank was on, as it was last
// read before a moment. Only ml_enrich decides which run a workload belongs to; of a
// run with several ranks, the process is known by its rank.
func (s *State) Own(run, rank string, at time.Time) []string {
	return s.lines(at, func(u *use) bool { return run != "" && u.run == run && u.Rank == rank })
}

// Of returns a line for each GPU of a run, as it was last read before a moment.
func (s *State) Of(run string, at time.Time) []string {
	return s.lines(at, func(u *use) bool { return run != "" && u.run == run })
}

// lines returns a line for each GPU that has a workload of a kind.
func (s *State) lines(at time.Time, of func(*use) bool) (lines []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, g := range s.gpus.Values() {
		r := g.before(at)
		if r == nil {
			continue
		}
		own := slices.IndexFunc(r.uses, func(u use) bool { return of(&u) })
		if own >= 0 {
			lines = append(lines, g.line(r, cmp.Or(r.uses[own].join, "run")))
		}
	}
	slices.Sort(lines)
	return lines[:min(len(lines), maxOwn)]
}

// before returns the last reading that is not later than a second after at, or
// else the first one; nil if that is older than maxAge.
func (g *gpu) before(at time.Time) *reading {
	i := len(g.readings) - 1
	for i > 0 && g.readings[i].at.After(at.Add(time.Second)) {
		i--
	}
	if i < 0 || at.Sub(g.readings[i].at).Abs() > maxAge {
		return nil
	}
	return &g.readings[i]
}

// line describes a reading. own is the rule by which the GPU is known to be the process's.
func (g *gpu) line(r *reading, own string) string {
	var b strings.Builder
	add := func(holds bool, format string, values ...any) {
		if holds {
			fmt.Fprintf(&b, format, values...)
		}
	}
	add(true, "GPU %s of %s (%s)", g.index, cmp.Or(g.host, "(unknown)"), g.id)
	add(g.replayed, ", from a recording")
	add(true, ", the process's own by its %s", own)
	add(r.used >= 0, ": %s", gibibytes(r.used))
	add(r.used >= 0 && r.limit >= 0, " of %s", gibibytes(r.limit))
	add(r.used >= 0, " used")
	add(r.utilization >= 0, ", %.0f%% busy", 100*r.utilization)
	add(r.status != "", ", %s", r.status)
	add(fabrics[r.fabric] != "", ", NVLink fabric registration %s", fabrics[r.fabric])
	add(len(r.throttled) > 0, ", clocks held down by %s", strings.Join(r.throttled, ", "))
	slices.SortStableFunc(r.uses, func(a, b use) int { return cmp.Compare(b.memory, a.memory) })
	for i := range r.uses {
		add(true, "; %s has %s", r.uses[i].name(), gibibytes(r.uses[i].memory))
	}
	add(r.more, "; and others")
	add(true, "; read at %s", r.at.UTC().Format(time.RFC3339Nano))
	return b.String()
}

// fabrics are the words for an mlattr.GPUFabricState.
var fabrics = map[float64]string{1: "not started", 2: "in progress", 3: "completed", 4: "completed with an error"}

func gibibytes(bytes float64) string { return fmt.Sprintf("%.1f GiB", bytes/(1<<30)) }

// name names a workload by what is known of it.
func (u *use) name() string {
	var parts []string
	for _, part := range [...][2]string{{"rank", u.Rank}, {"run", u.run}, {"service", u.Service}, {"job", u.Job}, {"pod", u.Pod}} {
		if part[1] != "" {
			parts = append(parts, part[0]+" "+part[1])
		}
	}
	if len(parts) == 0 && u.UserID != "" {
		return "user " + u.UserID
	}
	return cmp.Or(strings.Join(parts, ", "), "a process")
}
