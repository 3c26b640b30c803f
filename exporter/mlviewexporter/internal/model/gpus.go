package model

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
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
	read    map[Series]*gpuReading
	streams []*stream
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

// gpuOf returns a GPU, which it adds if there is room, else nil. Only a reading adds one.
func (s *Store) gpuOf(host, id string, p *Point, now time.Time) *gpu {
	if id == "" {
		return nil
	}
	at := gpuID{s.texts.of(host), s.texts.of(id)}
	one := s.gpus[at]
	if one != nil || derived[p.Series] {
		return one
	}
	key := keyOf("gpu", at.host, at.id)
	if len(s.gpus) >= s.settings.MaxGPUs && !s.replaceGPU(now) {
		s.limits.refuse("gpus", key, now)
		return nil
	}
	s.limits.accept("gpus", key)
	one = &gpu{gpuID: at, key: key, lastSeen: now, read: make(map[Series]*gpuReading)}
	s.gpus[at] = one
	one.see(p, s, now)
	return one
}

// replaceGPU removes the GPU that was read longest ago, if it is not read any more.
func (s *Store) replaceGPU(now time.Time) bool {
	if now.Sub(s.fullGPUs).Abs() < searchAgain {
		return false
	}
	var oldest *gpu
	for _, g := range s.gpus {
		if g.readings.Silent(now) && (oldest == nil || g.lastSeen.Before(oldest.lastSeen)) {
			oldest = g
		}
	}
	if oldest == nil {
		s.fullGPUs = now
		return false
	}
	s.removeGPU(oldest)
	return true
}

func (s *Store) removeGPU(g *gpu) {
	for _, one := range g.streams {
		s.streams.remove(one)
	}
	delete(s.gpus, g.gpuID)
}

// see takes over what a point says of a GPU besides its value.
func (g *gpu) see(p *Point, s *Store, now time.Time) {
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

// userOf returns the user of the workload of a GPU that belongs to a run.
func (s *Store) userOf(g *gpu, of *run) string {
	for _, one := range g.streams {
		if l := &one.labels; one.series == GPUWorkload && l.Run == of.id && l.Own[4] != "" && s.runWithID(l.Run, l.Own[6], g.host) == of {
			return s.user(one.workload())
		}
	}
	return ""
}

// workload returns what the workload of a stream is known by.
func (s *stream) workload() *Workload {
	l := &s.labels
	return &Workload{Job: l.Own[0], Namespace: l.Own[1], Pod: l.Own[2], Container: l.Own[3], UserID: l.Own[4], User: l.Own[7]}
}

// user returns the user of a workload: the number if it is one of the configured
// owners, else the name on the host, else the number.
func (s *Store) user(w *Workload) string {
	// What ml_guard writes instead of a name is none.
	if s.settings.Owners[w.UserID] != "" || strings.HasPrefix(w.User, "[") {
		return w.UserID
	}
	return cmp.Or(w.User, w.UserID)
}

// named returns how a workload is called, and whose it is.
func (s *Store) named(w *Workload, service string) (name, owner string) {
	user := s.user(w)
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
	return name, s.owner(user, w.Pod, service)
}

// gpuRow returns the row of a GPU. Its Activity is set later.
func (s *Store) gpuRow(g *gpu, now time.Time) GPU {
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
		if holder, known := s.holder(one); known {
			row.Holders = append(row.Holders, holder)
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

// holder returns the workload of a stream. known is false if nothing is known of
// it: its memory is not attributed.
func (s *Store) holder(one *stream) (holder Holder, known bool) {
	l := &one.labels
	join, service := l.Own[5], l.Own[6]
	holder = Holder{RunID: l.Run, Service: service, Rank: l.Rank, Join: join, Memory: finite(one.value)}
	holder.Name, holder.Owner = s.named(one.workload(), service)
	if r := s.runWithID(l.Run, service, l.Host); r != nil {
		holder.Run, holder.Service = r.key, r.service
		if holder.Owner == "" {
			holder.Owner = s.owner(r.user, r.service)
		}
	}
	return holder, holder.RunID != "" || holder.Name != "" || holder.Service != ""
}

// runWithID returns the run with an id: that of the service, else one that has a
// process on the host, else the one that was seen first. Services that share an
// id, such as a program and its model server, are several runs.
func (s *Store) runWithID(id, service, host string) *run {
	all := s.runsByID[id]
	if len(all) < 2 {
		for _, only := range all {
			return only
		}
		return nil
	}
	ref := runRef{id, service, host}
	best, known := s.withID[ref]
	if !known {
		best = firstOf(all, service, host)
		if len(s.withID) < maxStreams {
			s.withID[ref] = best
		}
	}
	return best
}

// keyOfRun returns the key of the run of a service with an id, "" if there is none.
func (s *Store) keyOfRun(id, service string) string {
	if r := s.runWithID(id, service, ""); r != nil {
		return r.key
	}
	return ""
}

// runRef is what a run is looked for by.
type runRef struct{ id, service, host string }

func firstOf(all []*run, service, host string) (best *run) {
	turn := func(r *run) int {
		switch {
		case service != "" && r.service == service:
			return 0
		case host != "" && r.hosts[host]:
			return 1
		default:
			return 2
		}
	}
	for _, r := range all {
		if best == nil || cmp.Or(cmp.Compare(turn(r), turn(best)), r.firstSeen.Compare(best.firstSeen), cmp.Compare(r.key, best.key)) < 0 {
			best = r
		}
	}
	return best
}

// owner returns the name that is known for a user, else for one of the other ids,
// else the user.
func (s *Store) owner(user string, others ...string) string {
	for _, id := range append([]string{user}, others...) {
		if name := s.settings.Owners[id]; id != "" && name != "" {
			return cut(name, maxLabel)
		}
	}
	if _, err := strconv.Atoi(user); err == nil {
		return "uid " + user
	}
	return user
}

// holdGPUs finds the GPUs of each run, and the users of services that hold GPUs.
func (s *Store) holdGPUs(now time.Time) {
	clear(s.users)
	for _, r := range s.runs {
		r.gpus = r.gpus[:0]
	}
	for _, g := range s.gpus {
		var users []*run
		first := make(map[*run]int)
		for _, one := range g.workloads(now) {
			user, service := s.user(one.workload()), one.labels.Own[6]
			if service != "" && user != "" {
				if known, again := s.users[service]; again && known != user {
					user = ""
				}
				s.users[service] = user
			}
			if one.labels.Run == "" {
				continue
			}
			r := s.runWithID(one.labels.Run, service, g.host)
			if r == nil {
				continue
			}
			if at, again := first[r]; again {
				r.gpus[at].memory += one.value
				continue
			}
			first[r] = len(r.gpus)
			users = append(users, r)
			r.gpus = append(r.gpus, heldGPU{gpu: g, rank: one.labels.Rank, memory: one.value, share: 1, silent: g.readings.Silent(now)})
		}
		for _, r := range users {
			r.gpus[first[r]].share = 1 / float64(len(users))
		}
	}
	for _, r := range s.runs {
		slices.SortFunc(r.gpus, func(a, b heldGPU) int { return compareGPUs(a.gpu, b.gpu) })
	}
}

func compareGPUs(a, b *gpu) int {
	return cmp.Or(cmp.Compare(a.host, b.host), compareRanks(a.index, b.index), cmp.Compare(a.id, b.id))
}
