// Package gpustate remembers the last readings of GPUs, so that a failure can be
// shown with the GPU that it happened on.
package gpustate

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/lru"
)

// The bounds of a State. The least recently read GPU makes room.
const (
	maxGPUs      = 1024
	maxReadings  = 6
	maxWorkloads = 16
	maxXIDs      = 8
	maxReasons   = 16
	maxText      = 128
	// maxBytes is what all readings take together.
	maxBytes = 16 << 20
	// maxAge is how old a reading may be to be shown with a failure.
	maxAge = 10 * time.Minute
)

// Unknown is a quantity that was not read.
const Unknown = -1

// Point is one value of one GPU. Its texts may share memory with a batch.
type Point struct {
	gpupoint.Point
	// Workload is what the value is of, where it is one of a workload.
	Workload Workload
}

// Reads reports whether a State keeps a quantity: those that may show the cause of a
// failure.
func Reads(q gpupoint.Quantity) bool {
	switch q {
	case gpupoint.MemoryUsed, gpupoint.MemoryLimit, gpupoint.Utilization, gpupoint.Status, gpupoint.Throttle,
		gpupoint.WorkloadMemory, gpupoint.WorkloadUtilization, gpupoint.ProcessMemory:
		return true
	}
	return false
}

// Workload is what uses a GPU.
type Workload struct {
	// Run is the run that the workload belongs to, or "". Join names the rule by
	// which ml_enrich joined the two; it is "" where the workload names its run.
	Run       string `json:"run,omitempty"`
	Join      string `json:"-"`
	Rank      string `json:"rank,omitempty"`
	Service   string `json:"service,omitempty"`
	Job       string `json:"job,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Pod       string `json:"pod,omitempty"`
	User      string `json:"user,omitempty"`
	// PID is 0 for all processes of the workload together.
	PID int64 `json:"pid,omitempty"`
}

// Texts returns the workload's texts.
func (w *Workload) Texts() []*string {
	return []*string{&w.Run, &w.Join, &w.Rank, &w.Service, &w.Job, &w.Namespace, &w.Pod, &w.User}
}

// Use is a workload with what it has.
type Use struct {
	Workload
	// Memory is in bytes, and Utilization 0 to 1; Unknown where not read.
	Memory      jsontree.Known `json:"memory_bytes,omitzero"`
	Utilization Ratio          `json:"utilization,omitzero"`
}

// Ratio is 0 to 1, or Unknown.
type Ratio float64

// IsZero reports that the ratio is not known: then omitzero leaves out a field.
func (r Ratio) IsZero() bool { return r < 0 }

// Reading is a GPU at one moment.
type Reading struct {
	At time.Time `json:"read_at,omitzero"`
	// Used and Limit are bytes of memory.
	Used        jsontree.Known `json:"memory_used_bytes,omitzero"`
	Limit       jsontree.Known `json:"memory_limit_bytes,omitzero"`
	Utilization Ratio          `json:"utilization,omitzero"`
	// Status is the state that the GPU was in, or "".
	Status string `json:"status"`
	// Throttled names what held the clocks down.
	Throttled []string `json:"throttled"`
	// Uses are the workloads, those with the most memory; Omitted counts the
	// others.
	Uses    []Use `json:"workloads"`
	Omitted int   `json:"omitted_workloads"`
}

// XID is an error that the driver reported.
type XID struct {
	At   time.Time `json:"time"`
	Code int64     `json:"code"`
	// Text is its short meaning.
	Text string `json:"text"`
}

// gpu is what is kept of one GPU. The State's lock guards it.
type gpu struct {
	host, id string
	index    jsontree.Known
	replayed bool
	readings []Reading // the newest last
	xids     []XID     // the newest last
	bytes    int64
}

type key struct{ host, id string }

// State is safe for concurrent use. Its lock is held for map operations.
type State struct {
	mu    sync.Mutex
	gpus  *lru.Cache[key, *gpu]
	bytes int64
}

// New returns an empty State.
func New() *State {
	s := &State{}
	s.gpus = lru.New(maxGPUs, func(_ key, g *gpu) { s.bytes -= g.bytes })
	return s
}

// Apply takes points in. Points of one moment belong together; those of an
// earlier one than the GPU's last are too late, so those from a future that now
// is far from are left out: they would hide all that follow.
func (s *State) Apply(points []Point, now time.Time) {
	latest := pcommon.NewTimestampFromTime(now.Add(maxAge))
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range points {
		p := &points[i]
		if p.ID == "" || len(p.ID) > maxText || len(p.Host) > maxText || p.Value != p.Value || p.At == 0 || p.At > latest {
			continue
		}
		g := s.gpu(p.Host, p.ID)
		before := g.bytes
		g.index, g.replayed = indexOf(p.Index), p.Replayed()
		g.apply(p)
		s.bytes += g.bytes - before
		s.makeRoom()
	}
}

func (s *State) gpu(host, id string) *gpu {
	k := key{host, id}
	g, ok := s.gpus.Get(k)
	if !ok {
		k = key{strings.Clone(host), strings.Clone(id)}
		g = &gpu{host: k.host, id: k.id, index: Unknown}
		s.gpus.Add(k, g)
	}
	return g
}

func (s *State) makeRoom() {
	for s.bytes > maxBytes && s.gpus.Len() > 1 {
		s.gpus.RemoveOldest()
	}
}

func (g *gpu) apply(p *Point) {
	n := len(g.readings)
	switch {
	case n == 0 || p.At.AsTime().After(g.readings[n-1].At):
		if n == maxReadings {
			g.readings = slices.Delete(g.readings, 0, 1)
		}
		g.readings = append(g.readings, Reading{
			At: p.At.AsTime(), Used: Unknown, Limit: Unknown, Utilization: Unknown,
			Throttled: []string{}, Uses: []Use{},
		})
		defer g.weigh()
	case p.At.AsTime().Before(g.readings[n-1].At):
		return
	}
	r := &g.readings[len(g.readings)-1]
	held := len(r.Uses) + len(r.Throttled)
	switch p.Quantity {
	case gpupoint.MemoryUsed:
		r.Used = bytesOf(p.Value)
	case gpupoint.MemoryLimit:
		r.Limit = bytesOf(p.Value)
	case gpupoint.Utilization:
		r.Utilization = Ratio(p.Value)
	case gpupoint.Throttle:
		if p.Value == 1 && len(r.Throttled) < maxReasons && !slices.Contains(r.Throttled, p.Name) {
			r.Throttled = append(r.Throttled, cut(p.Name))
		}
	case gpupoint.Status:
		if p.Value == 1 {
			r.Status = cut(p.Name)
		}
	case gpupoint.WorkloadMemory, gpupoint.ProcessMemory:
		if u := r.use(&p.Workload); u != nil {
			u.Memory = bytesOf(p.Value)
		}
	case gpupoint.WorkloadUtilization:
		if u := r.use(&p.Workload); u != nil {
			u.Utilization = Ratio(p.Value)
		}
	}
	if len(r.Uses)+len(r.Throttled) != held {
		g.weigh()
	}
}

// use returns the use of a workload, which is noted if there is room.
func (r *Reading) use(w *Workload) *Use {
	for i := range r.Uses {
		if r.Uses[i].Workload == *w {
			return &r.Uses[i]
		}
	}
	if len(r.Uses) == maxWorkloads {
		r.Omitted++
		return nil
	}
	own := *w
	for _, t := range own.Texts() {
		*t = cut(*t)
	}
	r.Uses = append(r.Uses, Use{Workload: own, Memory: Unknown, Utilization: Unknown})
	return &r.Uses[len(r.Uses)-1]
}

// weigh estimates what the GPU takes in memory.
func (g *gpu) weigh() {
	const each, use = 256, 192
	g.bytes = each
	for i := range g.readings {
		r := &g.readings[i]
		g.bytes += each + int64(len(r.Throttled))*maxText
		for j := range r.Uses {
			g.bytes += use
			for _, t := range r.Uses[j].Texts() {
				g.bytes += int64(len(*t))
			}
		}
	}
	g.bytes += int64(len(g.xids)) * each
}

// AddXID notes an error of a GPU.
func (s *State) AddXID(host, id string, x XID) {
	if id == "" || len(id) > maxText || len(host) > maxText {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.gpu(host, id)
	before := g.bytes
	x.Text = cut(x.Text)
	if len(g.xids) == maxXIDs {
		g.xids = slices.Delete(g.xids, 0, 1)
	}
	g.xids = append(g.xids, x)
	slices.SortStableFunc(g.xids, func(a, b XID) int { return a.At.Compare(b.At) })
	g.weigh()
	s.bytes += g.bytes - before
	s.makeRoom()
}

// cut copies a text, and bounds it.
func cut(s string) string { return strings.ToValidUTF8(strings.Clone(s[:min(len(s), maxText)]), "") }

// indexOf returns the driver's index of a GPU, or Unknown.
func indexOf(text string) jsontree.Known {
	index, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return Unknown
	}
	return jsontree.Known(index)
}

// bytesOf returns a number of bytes, or Unknown for what is none.
func bytesOf(v float64) jsontree.Known {
	if v < 0 || v >= 1<<62 {
		return Unknown
	}
	return jsontree.Known(v)
}

// Query selects the GPUs that concern a failure.
type Query struct {
	Host, Run, Rank string
	// At is when it failed.
	At time.Time
	// Whole asks for all GPUs of the run, whichever rank is on them.
	Whole bool
	// Limit is the number of GPUs wanted.
	Limit int
}

// GPU is the answer to a Query.
type GPU struct {
	Host  string         `json:"host"`
	ID    string         `json:"id"`
	Index jsontree.Known `json:"index,omitzero"`
	// Own is the rule by which the GPU is known to be the failed process's: the
	// workload's Join, or "run" where the workload names its run. It is "" where
	// neither is known.
	Own      string `json:"own_by"`
	Replayed bool   `json:"replayed"`
	Reading
	XIDs []XID `json:"xids"`
}

// XIDs returns the errors of a GPU around a moment.
func (s *State) XIDs(host, id string, at time.Time) []XID {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g, ok := s.gpus.Peek(key{host, id}); ok {
		return g.xidsAround(at)
	}
	return nil
}

// At returns the GPUs of the failed process's host, and those of its run, as
// they were last read before the failure: the process's own first.
func (s *State) At(q Query) []GPU {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []GPU
	for _, g := range s.gpus.Values() {
		r := g.before(q.At)
		own, ofRun := "", false
		if r != nil {
			own, ofRun = q.own(r)
		}
		if own == "" && (q.Host == "" || g.host != q.Host) && (!q.Whole || !ofRun) {
			continue
		}
		found := GPU{Host: g.host, ID: g.id, Index: g.index, Replayed: g.replayed, Own: own, XIDs: g.xidsAround(q.At)}
		if r != nil {
			found.Reading = *r
			found.Uses = slices.Clone(r.Uses)
			found.Throttled = slices.Clone(r.Throttled)
			slices.SortStableFunc(found.Uses, func(a, b Use) int { return cmp.Compare(b.Memory, a.Memory) })
		} else if len(found.XIDs) == 0 {
			continue
		} else {
			found.Reading = Reading{Used: Unknown, Limit: Unknown, Utilization: Unknown, Throttled: []string{}, Uses: []Use{}}
		}
		out = append(out, found)
	}
	// The process's own come first, then those of its host.
	order := func(g *GPU) (n int) {
		if g.Own == "" {
			n = 2
		}
		if g.Host != q.Host {
			n++
		}
		return n
	}
	slices.SortFunc(out, func(a, b GPU) int {
		return cmp.Or(cmp.Compare(order(&a), order(&b)), cmp.Compare(a.Host, b.Host), cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
	})
	return out[:min(len(out), q.Limit)]
}

// own returns the rule by which a GPU is the failed process's, or "", and whether
// its run uses the GPU. Only ml_enrich decides which run a workload belongs to; of
// a run with several ranks, the process is known by its rank.
func (q *Query) own(r *Reading) (own string, ofRun bool) {
	if q.Run == "" {
		return "", false
	}
	for i := range r.Uses {
		u := &r.Uses[i]
		if u.Run != q.Run {
			continue
		}
		ofRun = true
		if own == "" && u.Rank == q.Rank {
			own = cmp.Or(u.Join, "run")
		}
	}
	return own, ofRun
}

// before returns the last reading that is not later than a second after at, or
// else the first one; nil if that is older than maxAge.
func (g *gpu) before(at time.Time) *Reading {
	for i := len(g.readings) - 1; i >= 0; i-- {
		r := &g.readings[i]
		if i > 0 && r.At.After(at.Add(time.Second)) {
			continue
		}
		if d := at.Sub(r.At); d > maxAge || d < -maxAge {
			return nil
		}
		return r
	}
	return nil
}

func (g *gpu) xidsAround(at time.Time) (out []XID) {
	out = []XID{}
	for _, x := range g.xids {
		if d := at.Sub(x.At); d <= maxAge && d >= -maxAge {
			out = append(out, x)
		}
	}
	return out
}
