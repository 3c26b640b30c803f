// Package gpus holds the GPUs by their last readings, and names who uses them.
package gpus

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

// Set are the GPUs, and the last errors of the driver.
type Set struct {
	*input.Bounds
	streams *series.Table

	All map[Ref]*GPU
	// leaving are those that are not read any more.
	leaving kept.Leaving[*GPU]
	// XIDs may have those of GPUs that have not been read yet.
	XIDs map[Ref]*api.XID
}

// New returns a Set without GPUs.
func New(of *input.Bounds, streams *series.Table) *Set {
	return &Set{Bounds: of, streams: streams, All: make(map[Ref]*GPU), XIDs: make(map[Ref]*api.XID)}
}

// gpuGoneAfter is how long a GPU is shown without data that nobody held. One that
// somebody held is shown for as long as runs are.
const gpuGoneAfter = time.Hour

// Of returns the GPU of a point, which it adds if there is room, else nil. Only a reading
// adds one.
func (s *Set) Of(p *series.Point, now time.Time) *GPU {
	if p.Labels.GPU == "" {
		return nil
	}
	at := Ref{s.Texts.Of(p.Labels.Host), s.Texts.Of(p.Labels.GPU)}
	one := s.All[at]
	if one != nil || p.Series.Derived() {
		return one
	}
	key := api.Key("gpu", at.Host, at.ID)
	if len(s.All) >= s.MaxGPUs && !s.replace(now) {
		s.Limits.Refuse("gpus", key, now)
		return nil
	}
	s.Limits.Accept("gpus", key)
	one = &GPU{GPU: api.GPU{Key: key, Host: at.Host, ID: at.ID}, read: make(map[series.Series]*gpuReading)}
	s.All[at] = one
	s.See(one, p, now)
	return one
}

// replace removes the GPU that was read longest ago, if it is not read any more.
func (s *Set) replace(now time.Time) bool {
	silent := func(g *GPU) bool { return s.All[g.Ref()] == g && g.Readings.Silent(now) }
	return s.leaving.RemoveOldest(now, maps.Values(s.All), silent, func(g *GPU) time.Time { return g.LastSeen }, s.remove)
}

func (s *Set) remove(g *GPU) {
	g.Leave(s.streams)
	delete(s.All, g.Ref())
}

// See takes over what a point says of a GPU besides its value.
func (s *Set) See(g *GPU, p *series.Point, now time.Time) {
	g.SeeAgain(p.Series, now)
	g.Simulated = g.Simulated || p.Simulated
	if d := p.GPU; d != nil {
		s.Texts.Set(&g.Index, d.Index)
		s.Texts.Set(&g.Name, d.Name)
		s.Texts.Set(&g.Parent, d.Parent)
		s.Texts.Set(&g.Source, d.Source)
		g.Recorded = g.Source == mlattr.GPUSourceReplay
	}
}

// row returns the row of a GPU, without its problems. holder returns who has the
// workload of a stream, and false if nothing is known of it.
func (s *Set) row(g *GPU, holder func(*series.Stream) (api.Holder, bool), now time.Time) api.GPU {
	row := g.GPU
	row.XID, row.LastSeen, row.Holders = s.XIDs[g.Ref()], g.LastSeen.UTC(), []api.Holder{}
	if g.Readings.Silent(now) {
		row.NoDataSince = api.TimeOf(g.LastSeen)
	}
	numbers := map[series.Series]**float64{
		series.GPUUtilization: &row.Utilization, series.GPUTemperature: &row.Temperature,
		series.GPUMemoryUsed: &row.MemoryUsed, series.GPUMemoryLimit: &row.MemoryLimit, series.GPUMemoryReserved: &row.MemoryReserved,
		series.GPUPower: &row.Power, series.GPUPowerLimit: &row.PowerLimit,
	}
	for _, one := range g.Streams {
		if !g.Current(one, now) {
			continue
		}
		switch number := numbers[one.Series]; {
		case number != nil:
			*number = api.Finite(one.Value)
		case one.Series == series.GPUThrottle && one.Value == 1:
			row.Throttle = append(row.Throttle, one.Labels.Own[0])
		case one.Series == series.GPUStatus && one.Value == 1:
			row.Health = one.Labels.Own[0]
		case one.Series == series.GPUInfo:
			row.Name = cmp.Or(row.Name, one.Labels.Own[0])
		case one.Series == series.GPUIdle && one.Value > 0:
			row.IdleSince = api.TimeOf(one.At.Add(-time.Duration(min(one.Value, 1e9) * float64(time.Second))))
		}
	}
	attributed := 0.0
	for _, one := range g.Workloads(now) {
		if held, known := holder(one); known {
			row.Holders = append(row.Holders, held)
			attributed += one.Value
		}
	}
	slices.Sort(row.Throttle)
	slices.SortStableFunc(row.Holders, func(a, b api.Holder) int {
		return cmp.Or(cmp.Compare(*b.Memory, *a.Memory), cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Name, b.Name))
	})
	if row.MemoryUsed != nil {
		row.MemoryUnattributed = api.Finite(max(0, *row.MemoryUsed-attributed))
	}
	switch {
	case row.Health == Failed:
		row.Activity = Failed
	case len(row.Holders) > 0 || api.Value(row.Utilization) > 0:
		row.Activity = Working
	default:
		row.Activity = Free
	}
	return row
}

// Rows returns the rows of the GPUs, by host and index.
func (s *Set) Rows(holder func(*series.Stream) (api.Holder, bool), now time.Time) []api.GPU {
	return mlattr.Mapped(slices.SortedFunc(maps.Values(s.All), Compare), func(g *GPU) api.GPU { return s.row(g, holder, now) })
}

// SeeXID keeps the last error of a GPU. It may arrive before the GPU's first
// reading.
func (s *Set) SeeXID(of Ref, xid api.XID, now time.Time) {
	xid.Time = kept.Earlier(xid.Time, now)
	known := s.XIDs[of]
	if known != nil && xid.Time.Before(known.Time) || known == nil && !s.roomForXID(of) {
		return
	}
	xid.Code, xid.Message = s.Texts.Of(xid.Code), s.Texts.Of(xid.Message)
	s.XIDs[Ref{s.Texts.Of(of.Host), s.Texts.Of(of.ID)}] = &xid
}

// roomForXID reports whether there is room for an error of one more GPU. That of an
// unknown GPU makes room for that of a known one.
func (s *Set) roomForXID(of Ref) bool {
	if len(s.XIDs) < s.MaxGPUs {
		return true
	}
	if s.All[of] == nil {
		return false
	}
	for other := range s.XIDs {
		if s.All[other] == nil {
			delete(s.XIDs, other)
			return true
		}
	}
	return false
}

// Prune removes the GPUs and the errors that have been gone for long, but those that are
// needed for a problem.
func (s *Set) Prune(needed map[Ref]bool, now time.Time) {
	for id, g := range s.All {
		if !g.Readings.Silent(now) {
			g.DropGone(s.streams, now)
		}
		if age := now.Sub(g.LastSeen); age > gpuGoneAfter && !needed[id] && (age > s.History || len(g.Workloads(now)) == 0) {
			s.remove(g)
			delete(s.XIDs, id)
		}
	}
	maps.DeleteFunc(s.XIDs, func(of Ref, xid *api.XID) bool {
		age := now.Sub(xid.Time)
		return age > kept.Week || s.All[of] == nil && age > gpuGoneAfter
	})
}

// SilentHost is a host of GPUs without a recent reading.
type SilentHost struct {
	Host string
	Last time.Time
}

// SilentHosts returns the hosts none of whose GPUs is read any more, those that were read
// last at the end.
func (s *Set) SilentHosts(now time.Time) (silent []SilentHost) {
	newest, read := make(map[string]time.Time), make(map[string]bool)
	for _, g := range s.All {
		newest[g.Host] = shared.Later(newest[g.Host], g.LastSeen)
		read[g.Host] = read[g.Host] || !g.Readings.Silent(now)
	}
	for host, last := range newest {
		if !read[host] {
			silent = append(silent, SilentHost{host, last})
		}
	}
	slices.SortFunc(silent, func(a, b SilentHost) int { return cmp.Or(a.Last.Compare(b.Last), cmp.Compare(a.Host, b.Host)) })
	return silent
}

// MaxStreamsOfGPU limits the streams of one GPU.
const MaxStreamsOfGPU = 512

// Ref identifies a GPU. Recordings can have one id on several hosts.
type Ref struct{ Host, ID string }

// GPU is a GPU or a MIG device.
type GPU struct {
	// GPU is its row, as far as no reading says it.
	api.GPU
	// Readings says whether the GPU is read.
	Readings silence.Sender
	// read has when each series was read: several collectors may read a GPU, each some
	// series and as often as it likes.
	read map[series.Series]*gpuReading
	series.Group
}

// Ref identifies the GPU.
func (g *GPU) Ref() Ref { return Ref{g.Host, g.ID} }

// gpuReading is the arrival of the newest reading of a series, and the time between it
// and the one before, 0 if that is at most sameReading.
type gpuReading struct {
	at    time.Time
	every time.Duration
}

// sameReading is how far apart the points of one reading of a GPU arrive.
const sameReading = 5 * time.Second

// SeeAgain notes a point of a series of a GPU. ml_metrics' own series are no reading
// of it.
func (g *GPU) SeeAgain(of series.Series, now time.Time) {
	if of == series.GPUIdle {
		return
	}
	g.LastSeen = now
	g.Readings.See(now)
	read := shared.Entry(g.read, of, func() *gpuReading { return &gpuReading{at: now} })
	if later := now.Sub(read.at); later > sameReading {
		read.every = later
	}
	read.at = now
}

// Current reports whether a stream has a value of the last reading.
func (g *GPU) Current(one *series.Stream, now time.Time) bool {
	if g.Readings.Silent(now) {
		return !one.Gone && g.fresh(one)
	}
	return one.Live(now) && (one.Series == series.GPUIdle || g.fresh(one))
}

// fresh reports whether the last point of a stream belongs to the newest reading of its
// series, and that one has not been left out since.
func (g *GPU) fresh(one *series.Stream) bool {
	read := g.read[one.Series]
	return read != nil && read.at.Sub(one.At) <= sameReading && g.LastSeen.Sub(read.at) <= max(read.every*3/2, sameReading)
}

// Number returns the current value of a series with one stream.
func (g *GPU) Number(of series.Series) *float64 {
	for _, one := range g.Streams {
		if one.Series == of && !one.Gone && g.fresh(one) {
			return api.Finite(one.Value)
		}
	}
	return nil
}

// WorkloadOf returns what the workload of a stream is known by.
func WorkloadOf(s *series.Stream) *input.Workload {
	l := &s.Labels
	return &input.Workload{Job: l.Own[0], Namespace: l.Own[1], Pod: l.Own[2], Container: l.Own[3], UserID: l.Own[4], User: l.Own[7]}
}

// Workloads returns the workloads of the last reading. Readings can be closer than
// sameReading, and a workload that is joined to a run has other labels than before.
func (g *GPU) Workloads(now time.Time) (streams []*series.Stream) {
	newest := 0.0
	for _, one := range g.Streams {
		if one.Series == series.GPUWorkload && g.Current(one, now) {
			streams, newest = append(streams, one), max(newest, one.Time)
		}
	}
	return slices.DeleteFunc(streams, func(one *series.Stream) bool { return one.Value <= 0 || newest-one.Time > sameTime })
}

// sameTime is how far apart the times of the points of one reading are, in seconds.
const sameTime = 0.2

// Compare orders GPUs by host and index.
func Compare(a, b *GPU) int {
	return cmp.Or(cmp.Compare(a.Host, b.Host), CompareIndexes(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
}

// CompareIndexes orders ranks as numbers, and others behind them.
func CompareIndexes(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	if errX == nil && errY == nil {
		return cmp.Compare(x, y)
	}
	return cmp.Or(api.TrueFirst(errX == nil, errY == nil), cmp.Compare(a, b))
}

// maxWithout limits the hosts of Without.
const maxWithout = 16

// Without returns the hosts of which no GPU is known, none without any GPU.
func (s *Set) Without(hosts []string) []string {
	if len(s.All) == 0 {
		return nil
	}
	with := make(map[string]bool)
	for id := range s.All {
		with[id.Host] = true
	}
	hosts = slices.DeleteFunc(hosts, func(host string) bool { return with[host] })
	return hosts[:min(len(hosts), maxWithout)]
}

// Activities of GPUs, besides the kinds LooksHung, Slow and HeldIdle of their problems.
const (
	Working = "working"
	Failed  = "failed"
	Free    = "free"
	NoData  = "no_data"
)

// Activities are what GPUs do, nothing that is known first and the worst last.
var Activities = []string{"", Free, Working, NoData, mlattr.ProblemHeldIdle, mlattr.ProblemSlow, mlattr.ProblemLooksHung, Failed}

// Worse reports whether an activity is worse than another one.
func Worse(a, b string) bool { return slices.Index(Activities, a) > slices.Index(Activities, b) }

// Count counts the GPUs by what they do. A MIG device counts for the GPU that
// it is part of, which does what the worst of them does.
func Count(state *api.State) {
	whole := mlattr.Index(state.GPUs, func(row *api.GPU) Ref { return Ref{Host: row.Host, ID: row.ID} })
	partOf := func(row *api.GPU) *api.GPU {
		if row.Parent == "" {
			return nil
		}
		return whole[Ref{Host: row.Host, ID: row.Parent}]
	}
	for i := range state.GPUs {
		row := &state.GPUs[i]
		if of := partOf(row); of != nil && partOf(of) == nil && Worse(row.Activity, of.Activity) {
			of.Activity = row.Activity
		}
	}
	c := &state.Collector
	c.GPUs = make(map[string]int)
	for i := range state.GPUs {
		row := &state.GPUs[i]
		if c.Simulated = c.Simulated || row.Simulated; partOf(row) == nil {
			c.GPUs[row.Activity]++
			c.NoDataSince = api.Earlier(c.NoDataSince, row.NoDataSince)
		}
	}
}

// Owners are the names of owners by uid, user name, pod, hash or service.
type Owners map[string]string

// User returns the user of a workload: the number if it is one of the configured
// owners, else the name on the host, else the number.
func (o Owners) User(w *input.Workload) string {
	// What ml_guard writes instead of a name is none.
	if o[w.UserID] != "" || strings.HasPrefix(w.User, "[") {
		return w.UserID
	}
	return cmp.Or(w.User, w.UserID)
}

// Named returns how a workload is called, and whose it is.
func (o Owners) Named(w *input.Workload, service string) (name, owner string) {
	user := o.User(w)
	switch {
	case w.Job != "":
		name = "slurm job " + w.Job
	case w.Pod != "":
		name = "pod " + strings.TrimPrefix(w.Namespace+"/"+w.Pod, "/")
	case w.Container != "":
		name = "container " + w.Container[:min(12, len(w.Container))]
	case user != "":
		name = "user " + user
	}
	return name, o.Of(user, w.Pod, service)
}

// Of returns the name that is known for a user, else for one of the other ids,
// else the user.
func (o Owners) Of(user string, others ...string) string {
	for _, id := range append([]string{user}, others...) {
		if name := o[id]; id != "" && name != "" {
			return kept.Cut(name, kept.MaxLabel)
		}
	}
	if _, err := strconv.Atoi(user); err == nil {
		return "uid " + user
	}
	return user
}
