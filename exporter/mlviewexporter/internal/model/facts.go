package model

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Setting is something that is known of how a run was started: its attribute and
// the value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// RunFacts are the settings that the resource of a run's telemetry has.
type RunFacts struct {
	Namespace, Service, Run string
	Settings                []Setting
}

// maxSettings limits the settings of a run.
const maxSettings = 48

// facts are what the telemetry of a run says of it besides its numbers.
type facts struct {
	job, jobName, user, version string
	simulated                   bool
	// known are the settings that the resource names.
	known map[string]string
	sizes Sizes
	// hardware describes the GPUs that the run held last, gpuCount is their number.
	hardware string
	gpuCount int
	// someRanks reports whether only some ranks may send.
	someRanks bool
	// checkpoint is when the last one was saved, failed reports whether the span of the
	// whole training failed.
	checkpoint time.Time
	failed     bool
}

// Sizes are sizes that a span reports, 0 if it does not. The largest one of a run
// counts: the last batch of an epoch may be smaller.
type Sizes struct {
	Batch, Microbatches, Epochs, World int64
}

func (s *Sizes) grow(to *Sizes) {
	s.Batch, s.Microbatches = max(s.Batch, to.Batch), max(s.Microbatches, to.Microbatches)
	s.Epochs, s.World = max(s.Epochs, to.Epochs), max(s.World, to.World)
}

func (r *run) addSettings(all []Setting) {
	for _, one := range all {
		was, known := r.known[one.Name]
		if one.Value == "" || was == one.Value || !known && len(r.known) >= maxSettings {
			continue
		}
		if r.known == nil {
			r.known = make(map[string]string)
		}
		r.known[r.in.texts.of(one.Name)] = r.in.texts.of(one.Value)
	}
}

// noteHardware describes the GPUs of a run, such as "8 × NVIDIA H100 80GB".
func (r *run) noteHardware() {
	if len(r.gpus) == 0 || len(r.gpus) == r.gpuCount {
		return
	}
	r.gpuCount = len(r.gpus)
	counts := make(map[string]int)
	for _, held := range r.gpus {
		counts[cmp.Or(held.gpu.name, "GPU")]++
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, strconv.Itoa(counts[name])+" × "+name)
	}
	r.hardware = list(texts, maxNamedServices)
}

// settings returns what is known of how the run was started, ordered by name.
func (r *run) settings() []Setting {
	all := maps.Clone(r.known)
	if all == nil {
		all = make(map[string]string)
	}
	set := func(name, value string) {
		if value != "" {
			all[name] = value
		}
	}
	set(attrVersion, r.version)
	set(mlattr.JobName, r.jobName)
	set(mlattr.HardwareName, r.hardware)
	set(mlattr.HostName, strings.Join(namedOf(r.hostNames(), maxSettingHosts), ", "))
	for name, size := range map[string]int64{
		mlattr.BatchSize: r.sizes.Batch, mlattr.MicrobatchCount: r.sizes.Microbatches,
		mlattr.EpochTotal: r.sizes.Epochs, mlattr.WorldSize: r.sizes.World,
	} {
		if size > 0 {
			set(name, strconv.FormatInt(size, 10))
		}
	}
	set(mlattr.GenAIRequestModel, strings.Join(namedOf(r.models(), maxNamedServices), ", "))
	rows := make([]Setting, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		rows = append(rows, Setting{name, all[name]})
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
		if one.series == Tokens && one.labels.Own[1] != "" {
			names[one.labels.Own[1]] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// attrVersion is the version of a service.
const attrVersion = "service.version"
