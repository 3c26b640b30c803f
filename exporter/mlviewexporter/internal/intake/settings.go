package intake

import (
	"strconv"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// settingOf returns the name of the setting that an attribute of a resource says, ""
// for an attribute that says none, or one with content. Launchers and build systems
// have names of their own for the commit.
func settingOf(key string) string {
	switch of := vocabulary.ChangeKeyOf(key); {
	case key == "vcs.ref.head.name" || key == "deployment.environment.name":
		return key
	case of == nil || mlattr.Secret(of.Kind):
		return ""
	case of.Kind == mlattr.ChangeCommit:
		return attrCommit
	default:
		return key
	}
}

// attrCommit is the commit of a program.
const attrCommit = "vcs.ref.head.revision"

// sizeNames are canonical attributes that a resource states as numbers.
var sizeNames = []string{mlattr.WorldSize, mlattr.TokensPerStep, mlattr.SamplesPerStep, mlattr.FLOPsPerToken}

// maxSettingLength limits a value that is put together, in bytes.
const maxSettingLength = 256

// settings reads what the resources of one request say of how runs were started. It
// keeps its memory.
type settings struct {
	// all are those of all resources so far, first is the index of the first one of
	// the current resource. runs are the runs so far.
	all   []api.Setting
	first int
	runs  []input.RunFacts
	// sizes are the last sizes as text.
	sizes [4]struct {
		n    float64
		text string
	}
}

// begin begins a resource.
func (s *settings) begin(f *vocabulary.Facts) {
	s.first = len(s.all)
	for i, name := range sizeNames {
		n, ok := f.Double(name)
		if !ok || n <= 0 {
			continue
		}
		if known := &s.sizes[i]; known.n != n {
			known.n, known.text = n, strconv.FormatFloat(n, 'f', -1, 64)
		}
		s.all = append(s.all, api.Setting{Name: name, Value: s.sizes[i].text})
	}
}

// read reads an attribute of the resource.
func (s *settings) read(key string, v pcommon.Value) {
	name := settingOf(key)
	if name == "" {
		return
	}
	value := text(v)
	if v.Type() == pcommon.ValueTypeSlice {
		var parts []string
		for _, part := range v.Slice().All() {
			if one := text(part); one != "" && len(parts) < 8 {
				parts = append(parts, one)
			}
		}
		value = strings.Join(parts, ", ")
	}
	if value != "" && len(value) <= maxSettingLength {
		s.all = append(s.all, api.Setting{Name: name, Value: value})
	}
}

// of notes that the runs of these sources have the settings of the resource.
func (s *settings) of(sources []*input.Source) {
	own := s.all[s.first:]
	if len(own) == 0 {
		return
	}
	last := ""
	for _, source := range sources {
		if source.Run != "" && source.Run != last {
			last = source.Run
			s.runs = append(s.runs, input.RunFacts{Namespace: source.Namespace, Service: source.Service, Run: last, Settings: own})
		}
	}
}

// reset forgets what was read.
func (s *settings) reset() {
	clear(s.all)
	clear(s.runs[:cap(s.runs)])
	s.all, s.first, s.runs = s.all[:0], 0, s.runs[:0]
}
