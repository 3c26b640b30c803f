package runs

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// rank is one process of a run.
type rank struct {
	name, host string
	// span is the phase or operation of the span that ended last.
	span  string
	ended int64
	// lastStep is when its last step ended, in Unix seconds.
	lastStep float64
}

// processes are those of a run.
type processes struct {
	Ranks map[string]*rank
	// Hosts are those of all attempts.
	Hosts map[string]bool
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
func (s *Set) rankOf(r *Run, name, host string, now time.Time) *rank {
	key := rankKey(name, host)
	one := r.Ranks[key]
	if one != nil || len(r.Ranks) >= maxRanks {
		return one
	}
	if key == unknownRank && len(r.Ranks) > 0 {
		if len(r.Ranks) == 1 {
			for _, only := range r.Ranks {
				return only
			}
		}
		return nil
	}
	if s.ranks >= maxAllRanks && !s.replaceRanks(now) {
		s.Limits.Drop("ranks")
		return nil
	}
	if r.Ranks[unknownRank] != nil {
		delete(r.Ranks, unknownRank)
		s.ranks--
	}
	one = &rank{name: name, host: host}
	r.Ranks[key] = one
	s.ranks++
	return one
}

// counted returns the ranks. Processes without a rank count only if
// none has one: they start the others.
func (r *processes) counted() []*rank {
	if named := mlattr.Where(maps.Values(r.Ranks), func(one *rank) bool { return one.name != "" }); len(named) > 0 {
		return named
	}
	return slices.Collect(maps.Values(r.Ranks))
}

// RankRows returns the ranks of a run in order, and those below the largest that
// are missing because they sent nothing.
func (r *Run) RankRows(now time.Time) (rows []api.Rank, missing []string) {
	processes := r.counted()
	rows = make([]api.Rank, 0, len(processes))
	for _, one := range processes {
		row := api.Rank{Rank: one.name, Host: one.host, LastSpan: one.span}
		if one.ended > 0 {
			row.LastSpanTime = api.TimeOf(time.Unix(0, one.ended))
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b api.Rank) int {
		return cmp.Or(gpus.CompareIndexes(a.Rank, b.Rank), cmp.Compare(a.Host, b.Host))
	})
	r.addStepsOfRanks(mlattr.Index(rows, func(row *api.Rank) string { return rankKey(row.Rank, row.Host) }), now)
	gpuOf := r.gpusOfRanks()
	for i := range rows {
		if held := gpuOf(&rows[i]); held != nil {
			rows[i].GPU, rows[i].GPUIndex = held.GPU.Key, held.GPU.Index
			rows[i].Utilization, rows[i].Power = held.GPU.Number(series.GPUUtilization), held.GPU.Number(series.GPUPower)
		}
	}
	if r.someRanks {
		return rows, nil
	}
	return rows, missingRanks(rows)
}

// addStepsOfRanks adds the steps and the time of the last one to the rows of ranks, by
// rankKey.
func (r *runStreams) addStepsOfRanks(rows map[string]*api.Rank, now time.Time) {
	counted := series.Batches
	for _, one := range r.streams {
		switch one.Series {
		case series.Steps:
			counted = series.Steps // as for the whole run
		case series.LastStep:
			if row := rows[rankKey(one.Labels.Rank, one.Labels.Host)]; row != nil {
				row.LastStep = api.Later(row.LastStep, series.Unix(one.Value))
			}
		}
	}
	for key, of := range r.stepCounts(now) {
		row := rows[rankKey(key.Labels.Rank, key.Labels.Host)]
		if key.Series == counted && row != nil && (row.Steps == nil || *row.Steps < of.count.Sum) {
			row.Steps = of.count.All()
		}
	}
}

// gpusOfRanks returns what finds the GPU of a rank: that of its workload, else the only one
// of its host if no other rank of the run is there.
func (r *Run) gpusOfRanks() func(row *api.Rank) *Held {
	// onHost has the GPU of a host, nil if it has several.
	byRank, onHost, ranks := make(map[string]*Held), make(map[string]*Held), make(map[string]int)
	for i := range r.GPUs {
		held := &r.GPUs[i]
		if held.rank != "" && byRank[held.rank] == nil {
			byRank[held.rank] = held
		}
		if _, several := onHost[held.GPU.Host]; several {
			held = nil
		}
		onHost[r.GPUs[i].GPU.Host] = held
	}
	for _, one := range r.Ranks {
		ranks[one.host]++
	}
	return func(row *api.Rank) *Held {
		if held := byRank[row.Rank]; held != nil {
			return held
		}
		if held := onHost[row.Host]; held != nil && held.rank == "" && ranks[row.Host] == 1 {
			return held
		}
		return nil
	}
}

// maxMissingRanks limits the list of missing ranks.
const maxMissingRanks = 256

// missingRanks returns the ranks between 0 and the largest that are not in rows.
func missingRanks(rows []api.Rank) (missing []string) {
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

// See takes over what a process that has sent spans of the run says of it.
func (r *Run) See(src *input.Source, now time.Time) {
	r.LastSeen = now
	r.sent(now)
	r.News.See(now)
	r.Simulated = r.Simulated || src.Simulated
	texts := r.in.Texts
	texts.Set(&r.Job, src.Job)
	texts.Set(&r.JobName, src.JobName)
	texts.Set(&r.User, src.User)
	texts.Set(&r.Version, src.Version)
	r.someRanks = r.someRanks || src.SomeRanks
}

// Span takes over what a span says of its run and rank.
func (r *Run) Span(in *input.Span, now time.Time) {
	src := in.Source
	for i, size := range in.Sizes {
		r.sizes[i] = max(r.sizes[i], size)
	}
	if in.Fact.Phase == "train" {
		r.failed = in.Failed
	}
	ended := time.Unix(0, min(in.End, now.UnixNano()))
	if in.Fact.Phase == "checkpoint" && !in.Failed && !loads(in.Fact.Operation) && ended.After(r.Checkpoint) {
		r.Checkpoint = ended
	}
	if src.Rank == "" && src.Host == "" && in.Fact.Phase == "" {
		return
	}
	rank := r.Ranks[src.Rank]
	if rank == nil {
		rank = r.in.rankOf(r, r.in.Texts.Of(src.Rank), r.in.Texts.Of(src.Host), now)
	}
	if rank == nil {
		return
	}
	if in.End >= rank.ended {
		r.in.moveRank(r, rank, src.Host)
	}
	what := cmp.Or(in.Fact.Phase, in.Fact.Operation)
	// The whole run or epoch says nothing of where a rank is.
	if what != "" && what != "train" && what != "epoch" && in.End >= rank.ended && in.End <= now.UnixNano()+int64(time.Minute) {
		rank.span, rank.ended = r.in.Texts.Of(what), in.End
	}
}

// loads reports whether an operation restores a checkpoint.
func loads(operation string) bool {
	return strings.HasPrefix(operation, "load") || strings.Contains(operation, "restore")
}

// hostNames returns the hosts of the ranks.
func (r *processes) hostNames() []string {
	hosts := make(map[string]bool)
	for _, one := range r.Ranks {
		if one.host != "" {
			hosts[one.host] = true
		}
	}
	return slices.Sorted(maps.Keys(hosts))
}

// WithoutHost returns the number of ranks whose host is unknown.
func (r *processes) WithoutHost() int {
	return len(mlattr.Where(maps.Values(r.Ranks), func(one *rank) bool { return one.host == "" && one.name != "" }))
}

// maxRanks limits the ranks of a run, maxAllRanks those of all.
const (
	maxRanks    = 16_384
	maxAllRanks = 65_536
)

// Held is a GPU of a run.
type Held struct {
	GPU    *gpus.GPU
	rank   string
	memory float64
	// silent reports whether the GPU is not read any more.
	silent bool
	// Share is 1, or less if other runs use the GPU as well.
	Share float64
}

// HoldGPUs finds the GPUs of each run, and the users of services that hold GPUs.
func (s *Set) HoldGPUs(now time.Time) {
	clear(s.users)
	for _, r := range s.All {
		r.GPUs = r.GPUs[:0]
	}
	for _, g := range s.gpus.All {
		var users []*Run
		first := make(map[*Run]int)
		for _, one := range g.Workloads(now) {
			user, service := s.Owners.User(gpus.WorkloadOf(one)), one.Labels.Own[6]
			if service != "" && user != "" {
				if known, again := s.users[service]; again && known != user {
					user = ""
				}
				s.users[service] = user
			}
			if one.Labels.Run == "" {
				continue
			}
			r := s.withID(one.Labels.Run, service, g.Host)
			if r == nil {
				continue
			}
			if at, again := first[r]; again {
				r.GPUs[at].memory += one.Value
				continue
			}
			first[r] = len(r.GPUs)
			users = append(users, r)
			r.GPUs = append(r.GPUs, Held{GPU: g, rank: one.Labels.Rank, memory: one.Value, Share: 1, silent: g.Readings.Silent(now)})
		}
		for _, r := range users {
			r.GPUs[first[r]].Share = 1 / float64(len(users))
		}
	}
	for _, r := range s.All {
		slices.SortFunc(r.GPUs, func(a, b Held) int { return gpus.Compare(a.GPU, b.GPU) })
	}
}

// userOf returns the user of the workload of a GPU that belongs to a run.
func (s *Set) userOf(g *gpus.GPU, of *Run) string {
	for _, one := range g.Streams {
		if l := &one.Labels; one.Series == series.GPUWorkload && l.Run == of.ID && l.Own[4] != "" && s.withID(l.Run, l.Own[6], g.Host) == of {
			return s.Owners.User(gpus.WorkloadOf(one))
		}
	}
	return ""
}

// Holder returns the workload of a stream. known is false if nothing is known of
// it: its memory is not attributed.
func (s *Set) Holder(one *series.Stream) (holder api.Holder, known bool) {
	l := &one.Labels
	join, service := l.Own[5], l.Own[6]
	holder = api.Holder{RunID: l.Run, Service: service, Rank: l.Rank, Join: join, Memory: api.Finite(one.Value)}
	holder.Name, holder.Owner = s.Owners.Named(gpus.WorkloadOf(one), service)
	if r := s.withID(l.Run, service, l.Host); r != nil {
		holder.Run, holder.Service = r.Key, r.Service
		holder.Owner = cmp.Or(holder.Owner, s.Owners.Of(r.User, r.Service))
	}
	return holder, holder.RunID != "" || holder.Name != "" || holder.Service != ""
}

// OwnerOf returns the owner of a run: its user, else that of its GPUs' workloads,
// else that of the workloads that name its service.
func (s *Set) OwnerOf(r *Run) string {
	user := r.User
	for i := 0; user == "" && i < len(r.GPUs); i++ {
		user = s.userOf(r.GPUs[i].GPU, r)
	}
	return s.Owners.Of(cmp.Or(user, s.users[r.Service]), r.Service)
}

// OwnerOfService returns the owner of a service without a run: the user, whom its
// spans name, else that of the GPU workloads that name the service.
func (s *Set) OwnerOfService(service, user string) string {
	return s.Owners.Of(cmp.Or(user, s.users[service]), service)
}

// maxSettings limits the settings of a run.
const maxSettings = 48

// facts are what the telemetry of a run says of it besides its numbers.
type facts struct {
	// known are the settings that the resource names.
	known map[string]string
	// sizes are the largest ones: the last batch of an epoch may be smaller.
	sizes input.Sizes
	// hardware describes the GPUs that the run held last, gpuCount is their number.
	hardware string
	gpuCount int
	// someRanks reports whether only some ranks may send.
	someRanks bool
	// failed reports whether the span of the whole training failed.
	failed bool
}

// AddSettings takes over what the resource of a run says of how it was started.
func (r *Run) AddSettings(all []api.Setting) {
	for _, one := range all {
		was, known := r.known[one.Name]
		if one.Value == "" || was == one.Value || !known && len(r.known) >= maxSettings {
			continue
		}
		mlattr.Put(&r.known, r.in.Texts.Of(one.Name), r.in.Texts.Of(one.Value))
	}
}

// GPUKeys are the keys of the GPUs that the run holds.
func (r *Run) GPUKeys() []string {
	return mlattr.Mapped(r.GPUs, func(held Held) string { return held.GPU.Key })
}

// noteHardware describes the GPUs of a run, such as "8 × NVIDIA H100 80GB".
func (r *Run) noteHardware() {
	if len(r.GPUs) == 0 || len(r.GPUs) == r.gpuCount {
		return
	}
	r.gpuCount = len(r.GPUs)
	counts := make(map[string]int)
	for _, held := range r.GPUs {
		counts[cmp.Or(held.GPU.Name, "GPU")]++
	}
	texts := mlattr.Mapped(slices.Sorted(maps.Keys(counts)), func(name string) string { return strconv.Itoa(counts[name]) + " × " + name })
	r.hardware = api.List(texts, api.MaxNamed)
}

// Settings returns what is known of how the run was started, ordered by name.
func (r *Run) Settings() []api.Setting {
	all := map[string]string{
		mlattr.ServiceVersion: r.Version, mlattr.JobName: r.JobName, mlattr.HardwareName: r.hardware,
		mlattr.HostName:          api.List(r.hostNames(), maxSettingHosts),
		mlattr.GenAIRequestModel: api.List(r.models(), api.MaxNamed),
	}
	for i, size := range r.sizes {
		if size > 0 {
			all[input.SizeNames[i]] = strconv.FormatInt(size, 10)
		}
	}
	for name, value := range r.known {
		all[name] = cmp.Or(all[name], value)
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	return mlattr.Mapped(slices.Sorted(maps.Keys(all)), func(name string) api.Setting { return api.Setting{Name: name, Value: all[name]} })
}

// maxSettingHosts limits the hosts that a setting names.
const maxSettingHosts = 64

// models returns the models that the run uses.
func (r *runStreams) models() []string {
	names := make(map[string]bool)
	for _, one := range r.streams {
		if one.Series == series.Tokens && one.Labels.Own[1] != "" {
			names[one.Labels.Own[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
