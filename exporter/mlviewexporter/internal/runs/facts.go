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
		if holder.Owner == "" {
			holder.Owner = s.Owners.Of(r.User, r.Service)
		}
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
		if r.known == nil {
			r.known = make(map[string]string)
		}
		r.known[r.in.texts.Of(one.Name)] = r.in.texts.Of(one.Value)
	}
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
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, strconv.Itoa(counts[name])+" × "+name)
	}
	r.hardware = api.List(texts, api.MaxNamed)
}

// Settings returns what is known of how the run was started, ordered by name.
func (r *Run) Settings() []api.Setting {
	all := map[string]string{
		attrVersion: r.Version, mlattr.JobName: r.JobName, mlattr.HardwareName: r.hardware,
		mlattr.HostName:          strings.Join(namedOf(r.hostNames(), maxSettingHosts), ", "),
		mlattr.GenAIRequestModel: strings.Join(namedOf(r.models(), api.MaxNamed), ", "),
	}
	for name, size := range map[string]int64{
		mlattr.BatchSize: r.sizes.Batch, mlattr.MicrobatchCount: r.sizes.Microbatches,
		mlattr.EpochTotal: r.sizes.Epochs, mlattr.WorldSize: r.sizes.World,
	} {
		if size > 0 {
			all[name] = strconv.FormatInt(size, 10)
		}
	}
	for name, value := range r.known {
		all[name] = cmp.Or(all[name], value)
	}
	maps.DeleteFunc(all, func(_, value string) bool { return value == "" })
	rows := make([]api.Setting, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		rows = append(rows, api.Setting{Name: name, Value: all[name]})
	}
	return rows
}

// maxSettingHosts limits the hosts that a setting names.
const maxSettingHosts = 64

// namedOf returns the first texts, and how many more there are.
func namedOf(texts []string, most int) []string {
	if more := len(texts) - most; more > 0 {
		return append(slices.Clip(texts[:most]), strconv.Itoa(more)+" more")
	}
	return texts
}

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

// attrVersion is the version of a service.
const attrVersion = "service.version"
