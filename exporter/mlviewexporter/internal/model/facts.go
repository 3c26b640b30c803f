package model

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
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

// facts are what is known of how a run was started.
type facts struct {
	settings map[string]string
	sizes    Sizes
	// hardware describes the GPUs that the run held last, gpus is their number.
	hardware string
	gpus     int
	// someRanks reports whether only some ranks may send.
	someRanks bool
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

// ApplyFacts takes over the settings of runs.
func (s *Store) ApplyFacts(all []RunFacts) {
	if len(all) == 0 {
		return
	}
	now := s.settings.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range all {
		if r := s.runOf(all[i].Namespace, all[i].Service, all[i].Run, share.OriginOf(0, all[i].Service), now); r != nil {
			s.addSettings(r, all[i].Settings)
		}
	}
}

func (s *Store) addSettings(r *run, all []Setting) {
	for _, one := range all {
		was, known := r.facts.settings[one.Name]
		if one.Value == "" || was == one.Value || !known && len(r.facts.settings) >= maxSettings {
			continue
		}
		if r.facts.settings == nil {
			r.facts.settings = make(map[string]string)
		}
		r.facts.settings[s.texts.of(one.Name)] = s.texts.of(one.Value)
	}
}

// noteHardware describes the GPUs of a run, such as "8 × NVIDIA H100 80GB".
func (r *run) noteHardware() {
	if len(r.gpus) == 0 || len(r.gpus) == r.facts.gpus {
		return
	}
	r.facts.gpus = len(r.gpus)
	counts := make(map[string]int)
	for _, held := range r.gpus {
		counts[cmp.Or(held.gpu.name, "GPU")]++
	}
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		texts = append(texts, strconv.Itoa(counts[name])+" × "+name)
	}
	r.facts.hardware = list(texts, maxNamedServices)
}

// settings returns what is known of how the run was started, ordered by name.
func (r *run) settings() []Setting {
	all := maps.Clone(r.facts.settings)
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
	set(mlattr.HardwareName, r.facts.hardware)
	set(mlattr.HostName, strings.Join(namedOf(r.hostNames(), maxSettingHosts), ", "))
	for name, size := range map[string]int64{
		mlattr.BatchSize: r.facts.sizes.Batch, mlattr.MicrobatchCount: r.facts.sizes.Microbatches,
		mlattr.EpochTotal: r.facts.sizes.Epochs, mlattr.WorldSize: r.facts.sizes.World,
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
func (r *run) models() []string {
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
