package model

import (
	"cmp"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

// gpuID identifies a GPU. Recordings can have one id on several hosts.
type gpuID struct{ host, id string }

// gpu is a GPU or a MIG device.
type gpu struct {
	gpuID
	key                         string
	index, name, parent, source string
	simulated                   bool
	lastSeen                    time.Time
	// readings says whether the GPU is read.
	readings silence.Sender
	// read has when each series was read: several collectors may read a GPU, each some
	// series and as often as it likes.
	read map[Series]*gpuReading
	group
}

// gpus are the GPUs, and the last errors of the driver.
type gpus struct {
	settings Settings
	texts    *texts
	limits   *limits
	streams  *streamTable

	all map[gpuID]*gpu
	// full is when nothing could make room for one.
	full time.Time
	// xids may have those of GPUs that have not been read yet.
	xids map[gpuID]*XID
}

func newGPUs(settings Settings, texts *texts, limits *limits, streams *streamTable) *gpus {
	return &gpus{
		settings: settings, texts: texts, limits: limits, streams: streams,
		all: make(map[gpuID]*gpu), xids: make(map[gpuID]*XID),
	}
}

// gpuReading is the arrival of the newest reading of a series, and the time between it
// and the one before, 0 if that is at most sameReading.
type gpuReading struct {
	at    time.Time
	every time.Duration
}

// sameReading is how far apart the points of one reading of a GPU arrive.
const sameReading = 5 * time.Second

// gpuGoneAfter is how long a GPU is shown without data that nobody held. One that
// somebody held is shown for as long as runs are.
const gpuGoneAfter = time.Hour

// of returns the GPU of a point, which it adds if there is room, else nil. Only a reading
// adds one.
func (s *gpus) of(p *Point, now time.Time) *gpu {
	if p.Labels.GPU == "" {
		return nil
	}
	at := gpuID{s.texts.of(p.Labels.Host), s.texts.of(p.Labels.GPU)}
	one := s.all[at]
	if one != nil || derived[p.Series] {
		return one
	}
	key := keyOf("gpu", at.host, at.id)
	if len(s.all) >= s.settings.MaxGPUs && !s.replace(now) {
		s.limits.refuse("gpus", key, now)
		return nil
	}
	s.limits.accept("gpus", key)
	one = &gpu{gpuID: at, key: key, lastSeen: now, read: make(map[Series]*gpuReading)}
	s.all[at] = one
	s.see(one, p, now)
	return one
}

// replace removes the GPU that was read longest ago, if it is not read any more.
func (s *gpus) replace(now time.Time) bool {
	if now.Sub(s.full).Abs() < searchAgain {
		return false
	}
	var oldest *gpu
	for _, g := range s.all {
		if g.readings.Silent(now) && (oldest == nil || g.lastSeen.Before(oldest.lastSeen)) {
			oldest = g
		}
	}
	if oldest == nil {
		s.full = now
		return false
	}
	s.remove(oldest)
	return true
}

func (s *gpus) remove(g *gpu) {
	for _, one := range g.streams {
		s.streams.remove(one)
	}
	delete(s.all, g.gpuID)
}

// see takes over what a point says of a GPU besides its value.
func (s *gpus) see(g *gpu, p *Point, now time.Time) {
	g.seeAgain(p.Series, now)
	g.simulated = g.simulated || p.Simulated
	if d := p.GPU; d != nil {
		for _, text := range [...]struct {
			of *string
			is string
		}{{&g.index, d.Index}, {&g.name, d.Name}, {&g.parent, d.Parent}, {&g.source, d.Source}} {
			if text.is != "" && text.is != *text.of {
				*text.of = s.texts.of(text.is)
			}
		}
	}
}

// seeAgain notes a point of a series of a GPU. ml_metrics' own series are no reading
// of it.
func (g *gpu) seeAgain(series Series, now time.Time) {
	if series == GPUIdle {
		return
	}
	g.lastSeen = now
	g.readings.See(now)
	read := g.read[series]
	if read == nil {
		read = &gpuReading{at: now}
		g.read[series] = read
	}
	if later := now.Sub(read.at); later > sameReading {
		read.every = later
	}
	read.at = now
}

// current reports whether a stream has a value of the last reading.
func (g *gpu) current(one *stream, now time.Time) bool {
	if g.readings.Silent(now) {
		return !one.gone && g.fresh(one)
	}
	return one.live(now) && (one.series == GPUIdle || g.fresh(one))
}

// fresh reports whether the last point of a stream belongs to the newest reading of its
// series, and that one has not been left out since.
func (g *gpu) fresh(one *stream) bool {
	read := g.read[one.series]
	return read != nil && read.at.Sub(one.at) <= sameReading && g.lastSeen.Sub(read.at) <= max(read.every*3/2, sameReading)
}

// recorded reports whether the numbers are played from a recording.
func (g *gpu) recorded() bool { return g.source == mlattr.GPUSourceReplay }

// number returns the current value of a series with one stream.
func (g *gpu) number(series Series) *float64 {
	for _, one := range g.streams {
		if one.series == series && !one.gone && g.fresh(one) {
			return finite(one.value)
		}
	}
	return nil
}

// workload returns what the workload of a stream is known by.
func (s *stream) workload() *Workload {
	l := &s.labels
	return &Workload{Job: l.Own[0], Namespace: l.Own[1], Pod: l.Own[2], Container: l.Own[3], UserID: l.Own[4], User: l.Own[7]}
}

// row returns the row of a GPU. Its Activity is set later. holder returns who has the
// workload of a stream, and false if nothing is known of it.
func (s *gpus) row(g *gpu, holder func(*stream) (Holder, bool), now time.Time) GPU {
	row := GPU{
		Key: g.key, ID: g.id, Index: g.index, Host: g.host, Name: g.name, Parent: g.parent,
		Source: g.source, Simulated: g.simulated, Recorded: g.recorded(), XID: s.xids[g.gpuID],
		LastSeen: g.lastSeen.UTC(), Holders: []Holder{},
	}
	if g.readings.Silent(now) {
		row.NoDataSince = timePointer(g.lastSeen)
	}
	attributed := 0.0
	for _, one := range g.streams {
		if g.current(one, now) {
			g.addValue(&row, one)
		}
	}
	for _, one := range g.workloads(now) {
		if held, known := holder(one); known {
			row.Holders = append(row.Holders, held)
			attributed += one.value
		}
	}
	slices.Sort(row.Throttle)
	slices.SortStableFunc(row.Holders, func(a, b Holder) int {
		return cmp.Or(cmp.Compare(*b.Memory, *a.Memory), cmp.Compare(a.RunID, b.RunID), cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Name, b.Name))
	})
	if row.MemoryUsed != nil {
		row.MemoryUnattributed = finite(max(0, *row.MemoryUsed-attributed))
	}
	return row
}

// workloads returns the workloads of the last reading. Readings can be closer than
// sameReading, and a workload that is joined to a run has other labels than before.
func (g *gpu) workloads(now time.Time) (streams []*stream) {
	newest := 0.0
	for _, one := range g.streams {
		if one.series == GPUWorkload && g.current(one, now) {
			streams, newest = append(streams, one), max(newest, one.time)
		}
	}
	return slices.DeleteFunc(streams, func(one *stream) bool { return one.value <= 0 || newest-one.time > sameTime })
}

// sameTime is how far apart the times of the points of one reading are, in seconds.
const sameTime = 0.2

// addValue adds the value of a stream to a GPU's row.
func (g *gpu) addValue(row *GPU, one *stream) {
	v := finite(one.value)
	switch one.series {
	case GPUUtilization:
		row.Utilization = v
	case GPUMemoryUsed:
		row.MemoryUsed = v
	case GPUMemoryLimit:
		row.MemoryLimit = v
	case GPUMemoryReserved:
		row.MemoryReserved = v
	case GPUPower:
		row.Power = v
	case GPUPowerLimit:
		row.PowerLimit = v
	case GPUTemperature:
		row.Temperature = v
	case GPUThrottle:
		if one.value == 1 {
			row.Throttle = append(row.Throttle, one.labels.Own[0])
		}
	case GPUStatus:
		if one.value == 1 {
			row.Health = one.labels.Own[0]
		}
	case GPUInfo:
		row.Name = cmp.Or(row.Name, one.labels.Own[0])
	case GPUIdle:
		if one.value > 0 {
			row.IdleSince = timePointer(one.at.Add(-time.Duration(min(one.value, 1e9) * float64(time.Second))))
		}
	}
}

func compareGPUs(a, b *gpu) int {
	return cmp.Or(cmp.Compare(a.host, b.host), compareRanks(a.index, b.index), cmp.Compare(a.id, b.id))
}

// rows returns the rows of the GPUs, by host and index.
func (s *gpus) rows(holder func(*stream) (Holder, bool), now time.Time) []GPU {
	ordered := make([]*gpu, 0, len(s.all))
	for _, g := range s.all {
		ordered = append(ordered, g)
	}
	slices.SortFunc(ordered, compareGPUs)
	rows := make([]GPU, 0, len(ordered))
	for _, g := range ordered {
		rows = append(rows, s.row(g, holder, now))
	}
	return rows
}

// failed keeps the last error of a GPU. It may arrive before the GPU's first
// reading.
func (s *gpus) failed(of gpuID, xid XID) {
	known := s.xids[of]
	if known != nil && xid.Time.Before(known.Time) || known == nil && !s.roomForXID(of) {
		return
	}
	xid.Code, xid.Message = s.texts.of(xid.Code), s.texts.of(xid.Message)
	s.xids[gpuID{s.texts.of(of.host), s.texts.of(of.id)}] = &xid
}

// roomForXID reports whether there is room for an error of one more GPU. That of an
// unknown GPU makes room for that of a known one.
func (s *gpus) roomForXID(of gpuID) bool {
	if len(s.xids) < s.settings.MaxGPUs {
		return true
	}
	if s.all[of] == nil {
		return false
	}
	for other := range s.xids {
		if s.all[other] == nil {
			delete(s.xids, other)
			return true
		}
	}
	return false
}

// prune removes the GPUs and the errors that have been gone for long, but those that are
// needed for a problem.
func (s *gpus) prune(needed map[gpuID]bool, now time.Time) {
	for id, g := range s.all {
		if !g.readings.Silent(now) {
			g.dropGone(s.streams, now)
		}
		if age := now.Sub(g.lastSeen); age > gpuGoneAfter && !needed[id] && (age > s.settings.History || len(g.workloads(now)) == 0) {
			s.remove(g)
			delete(s.xids, id)
		}
	}
	for of, xid := range s.xids {
		if age := now.Sub(xid.Time); age > importedFor || s.all[of] == nil && age > gpuGoneAfter {
			delete(s.xids, of)
		}
	}
}

// silentHost is a host of GPUs without a recent reading.
type silentHost struct {
	host string
	last time.Time
}

// silentHosts returns the hosts none of whose GPUs is read any more, those that were read
// last at the end.
func (s *gpus) silentHosts(now time.Time) (silent []silentHost) {
	newest, read := make(map[string]time.Time), make(map[string]bool)
	for _, g := range s.all {
		if g.lastSeen.After(newest[g.host]) {
			newest[g.host] = g.lastSeen
		}
		read[g.host] = read[g.host] || !g.readings.Silent(now)
	}
	for host, last := range newest {
		if !read[host] {
			silent = append(silent, silentHost{host, last})
		}
	}
	slices.SortFunc(silent, func(a, b silentHost) int { return cmp.Or(a.last.Compare(b.last), cmp.Compare(a.host, b.host)) })
	return silent
}
