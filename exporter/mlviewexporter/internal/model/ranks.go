package model

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// rank is one process of a run.
type rank struct {
	name, host string
	pid        int64
	// span is the phase or operation of the span that ended last.
	span  string
	ended int64
	// lastStep is when its last step ended, in Unix seconds.
	lastStep float64
}

// processes are those of a run.
type processes struct {
	ranks map[string]*rank
	// hosts are those of all attempts.
	hosts map[string]bool
}

// rankKey returns the key of a process of a run. Without a rank the host stands for
// it.
func rankKey(rank, host string) string {
	if rank == "" {
		return "host " + host
	}
	return rank
}

// unknownRank is the key of a process of which neither rank nor host is known.
var unknownRank = rankKey("", "")

// rankOf returns a rank of the run. It returns nil if there are too many, and for a
// process that may be any of them.
func (s *runs) rankOf(r *run, name, host string, now time.Time) *rank {
	key := rankKey(name, host)
	one := r.ranks[key]
	if one != nil || len(r.ranks) >= maxRanks {
		return one
	}
	if key == unknownRank && len(r.ranks) > 0 {
		if len(r.ranks) == 1 {
			for _, only := range r.ranks {
				return only
			}
		}
		return nil
	}
	if s.ranks >= maxAllRanks && !s.replaceRanks(now) {
		s.limits.drop("ranks")
		return nil
	}
	if r.ranks[unknownRank] != nil {
		delete(r.ranks, unknownRank)
		s.ranks--
	}
	one = &rank{name: name, host: host}
	r.ranks[key] = one
	s.ranks++
	return one
}

// counted returns the ranks. Processes without a rank count only if
// none has one: they start the others.
func (r *processes) counted() []*rank {
	all := make([]*rank, 0, len(r.ranks))
	named := false
	for _, one := range r.ranks {
		named = named || one.name != ""
		all = append(all, one)
	}
	if named {
		all = slices.DeleteFunc(all, func(one *rank) bool { return one.name == "" })
	}
	return all
}

// processCount returns the number of processes.
func (r *processes) processCount() int {
	named := 0
	for _, one := range r.ranks {
		if one.name != "" {
			named++
		}
	}
	if named > 0 {
		return named
	}
	return len(r.ranks)
}

// rankRows returns the ranks of a run in order, and those below the largest that
// are missing because they sent nothing.
func (r *run) rankRows() (rows []Rank, missing []string) {
	byKey := make(map[string]*Rank, len(r.ranks))
	processes := r.counted()
	rows = make([]Rank, 0, len(processes))
	for _, one := range processes {
		row := Rank{Rank: one.name, Host: one.host, LastSpan: one.span}
		if one.ended > 0 {
			row.LastSpanTime = timePointer(time.Unix(0, one.ended))
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b Rank) int {
		return cmp.Or(compareRanks(a.Rank, b.Rank), cmp.Compare(a.Host, b.Host))
	})
	for i := range rows {
		byKey[rankKey(rows[i].Rank, rows[i].Host)] = &rows[i]
	}
	r.addStepsOfRanks(byKey)
	gpus := r.gpusOfRanks()
	for i := range rows {
		if held := gpus.of(&rows[i]); held != nil {
			rows[i].GPU, rows[i].GPUIndex = held.gpu.key, held.gpu.index
			rows[i].Utilization, rows[i].Power = held.gpu.number(GPUUtilization), held.gpu.number(GPUPower)
		}
	}
	if r.someRanks {
		return rows, nil
	}
	return rows, missingRanks(rows)
}

// addStepsOfRanks adds the steps and the time of the last one to the rows of ranks, by
// rankKey.
func (r *runStreams) addStepsOfRanks(rows map[string]*Rank) {
	add := func(of *Labels, steps float64) {
		if row := rows[rankKey(of.Rank, of.Host)]; row != nil && (row.Steps == nil || *row.Steps < steps) {
			row.Steps = finite(steps)
		}
	}
	counted := Batches
	if slices.ContainsFunc(r.streams, func(one *stream) bool { return one.series == Steps }) {
		counted = Steps // as for the whole run
	}
	several := len(r.writers) > 1
	for _, one := range r.streams {
		switch one.series {
		case counted:
			if !several {
				add(&one.labels, one.value)
			}
		case LastStep:
			row := rows[rankKey(one.labels.Rank, one.labels.Host)]
			if at, ok := unix(one.value); ok && row != nil && (row.LastStep == nil || at.After(*row.LastStep)) {
				row.LastStep = &at
			}
		}
	}
	if several {
		for key, counters := range r.stepCounters() {
			if key.series != counted {
				continue
			}
			var count total
			for _, one := range counters {
				count.add(one.value)
			}
			add(&key.labels, count.sum)
		}
	}
}

// gpusOfRanks finds the GPUs of ranks.
type gpusOfRanks struct {
	byRank map[string]*heldGPU
	// onHost has the GPU of a host, nil if it has several; ranks counts the ranks
	// there.
	onHost map[string]*heldGPU
	ranks  map[string]int
}

func (r *run) gpusOfRanks() gpusOfRanks {
	g := gpusOfRanks{make(map[string]*heldGPU), make(map[string]*heldGPU), make(map[string]int)}
	for i := range r.gpus {
		held := &r.gpus[i]
		if held.rank != "" && g.byRank[held.rank] == nil {
			g.byRank[held.rank] = held
		}
		if _, several := g.onHost[held.gpu.host]; several {
			held = nil
		}
		g.onHost[r.gpus[i].gpu.host] = held
	}
	for _, one := range r.ranks {
		g.ranks[one.host]++
	}
	return g
}

// of returns the GPU of a rank: that of its workload, else the only one of its
// host if no other rank of the run is there.
func (g *gpusOfRanks) of(row *Rank) *heldGPU {
	if held := g.byRank[row.Rank]; held != nil {
		return held
	}
	if held := g.onHost[row.Host]; held != nil && held.rank == "" && g.ranks[row.Host] == 1 {
		return held
	}
	return nil
}

// compareRanks orders ranks as numbers, and others behind them.
func compareRanks(a, b string) int {
	x, errX := strconv.Atoi(a)
	y, errY := strconv.Atoi(b)
	switch {
	case errX == nil && errY == nil:
		return cmp.Compare(x, y)
	case errX == nil:
		return -1
	case errY == nil:
		return 1
	default:
		return cmp.Compare(a, b)
	}
}

// maxMissingRanks limits the list of missing ranks.
const maxMissingRanks = 256

// missingRanks returns the ranks between 0 and the largest that are not in rows.
func missingRanks(rows []Rank) (missing []string) {
	next := 0
	for _, row := range rows {
		n, err := strconv.Atoi(row.Rank)
		if err != nil || n < 0 || n > maxRanks {
			continue
		}
		for ; next < n && len(missing) < maxMissingRanks; next++ {
			missing = append(missing, strconv.Itoa(next))
		}
		next = n + 1
	}
	return missing
}

// span takes over what a span says of its run and rank.
func (r *run) span(in *SpanInput, now time.Time) {
	src := in.Source
	r.lastSeen = now
	r.sent(now)
	r.news.See(now)
	r.simulated = r.simulated || src.Simulated
	for _, text := range [...]struct {
		of *string
		is string
	}{{&r.job, src.Job}, {&r.jobName, src.JobName}, {&r.user, src.User}, {&r.version, src.Version}} {
		if text.is != "" && text.is != *text.of {
			*text.of = r.in.texts.of(text.is)
		}
	}
	r.someRanks = r.someRanks || src.SomeRanks
	if in.Sizes != (Sizes{}) {
		r.sizes.grow(&in.Sizes)
	}
	if in.Phase == "train" {
		r.failed = in.Failed
	}
	ended := time.Unix(0, min(in.End, now.UnixNano()))
	if in.Phase == "checkpoint" && !in.Failed && !loads(in.Operation) && ended.After(r.checkpoint) {
		r.checkpoint = ended
	}
	if src.Rank == "" && src.Host == "" && in.Phase == "" {
		return
	}
	rank := r.ranks[src.Rank]
	if rank == nil {
		rank = r.in.rankOf(r, r.in.texts.of(src.Rank), r.in.texts.of(src.Host), now)
	}
	if rank == nil {
		return
	}
	if in.End >= rank.ended {
		r.in.moveRank(r, rank, src.Host)
	}
	if src.PID > 0 {
		rank.pid = src.PID
	}
	what := in.Phase
	if what == "" {
		what = in.Operation
	}
	// The whole run or epoch says nothing of where a rank is.
	if what != "" && what != "train" && what != "epoch" && in.End >= rank.ended && in.End <= now.UnixNano()+int64(time.Minute) {
		rank.span, rank.ended = r.in.texts.of(what), in.End
	}
}

// loads reports whether an operation restores a checkpoint.
func loads(operation string) bool {
	return strings.HasPrefix(operation, "load") || strings.Contains(operation, "restore")
}

// hostNames returns the hosts of the ranks.
func (r *processes) hostNames() []string {
	hosts := make(map[string]bool)
	for _, one := range r.ranks {
		if one.host != "" {
			hosts[one.host] = true
		}
	}
	return slices.Sorted(maps.Keys(hosts))
}

// withoutHost returns the number of ranks whose host is unknown.
func (r *processes) withoutHost() (n int) {
	for _, one := range r.ranks {
		if one.host == "" && one.name != "" {
			n++
		}
	}
	return n
}
