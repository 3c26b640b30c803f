package vocabularypage

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/testing/golden"
)

const repository = "../../../"

// conventions is the version of the semantic conventions that the names of others are of.
const conventions = "1.41.1"

// own are the beginnings of the names of this project.
var own = []string{"ml.", "nvidia.", "nccl.", "pytorch.", "repro."}

// TestRegistryIsGeneratedFromTheTables holds the registry of names, which OpenTelemetry Weaver
// reads, against canonical.yaml, problems.yaml, the series of ml_metrics, the metadata.yaml of
// the receivers, and registry.yaml.
func TestRegistryIsGeneratedFromTheTables(t *testing.T) {
	r := readRegistry(t)
	var build struct{ Dist struct{ Version string } }
	readTable(t, "builder-config.yaml", &build)
	require.NotEmpty(t, build.Dist.Version)

	golden.File(t, repository+"registry/manifest.yaml", generated("builder-config.yaml")+
		"schema_url: https://github.com/otelcol-ml/otelcol-ml/registry/"+build.Dist.Version+`
description: The names of otelcol-ml, of machine learning and of NVIDIA's GPUs.
stability: development
dependencies:
  - schema_url: https://opentelemetry.io/schemas/`+conventions+`
    registry_path: https://github.com/open-telemetry/semantic-conventions/archive/refs/tags/v`+conventions+`.zip[model]
`)
	for file, text := range map[string]string{
		"attributes.yaml": r.attributesFile(),
		"ml_metrics.yaml": r.seriesFile(),
		"ml_enrich.yaml":  r.enrichFile(),
		"gpu.yaml":        r.receiverFile("gpu"),
		"nccl.yaml":       r.receiverFile("nccl"),
		"events.yaml":     r.eventsFile(),
	} {
		golden.File(t, repository+"registry/"+file, text)
	}
	// Each text needs an example, as weaver asks.
	for name, a := range r.attributes {
		if strings.HasPrefix(a.Type, "string") && len(a.Values) == 0 && r.written.Examples[name] == "" {
			assert.Fail(t, "registry.yaml has no example", name)
		}
		assert.NotEmpty(t, a.Doc, name)
	}
	for name := range r.written.Examples {
		assert.Contains(t, r.attributes, name, "registry.yaml has an example of nothing")
	}
}

// attribute is a definition of the registry.
type attribute struct {
	Name, Type, Doc string
	// Values are those that the attribute has, if they are few.
	Values []string
}

// metric is a metric of the registry, or an event where it has no instrument.
type metric struct {
	name, unit, instrument, doc, note string
	refs                              []ref
}

// ref is an attribute of a metric, with what it means there if that is another thing.
type ref struct{ name, doc, level string }

// written is what registry.yaml has.
type written struct {
	Attributes []attribute
	Lacking    []string
	Values     map[string][]string
	Enriched   struct{ Beginnings, Attributes []string }
	Metrics    []struct {
		Name, Unit, Instrument, Doc string
		Labels                      []string
	}
	Events []struct {
		Name, Doc  string
		Attributes []string
	}
	Examples map[string]string
}

// described is an attribute in a metadata.yaml.
type described struct {
	Description  string
	Type         string
	Enum         []string
	NameOverride string `yaml:"name_override"`
	Level        string `yaml:"requirement_level"`
}

// receiver is what is read of a metadata.yaml.
type receiver struct {
	ResourceAttributes map[string]described `yaml:"resource_attributes"`
	Attributes         map[string]described
	Events             map[string]signal
	Metrics            map[string]signal
}

// signal is a metric or event of a metadata.yaml.
type signal struct {
	Attributes  []string
	Description string
	Note        string `yaml:"extended_documentation"`
	Unit        string
	Sum         *struct{ Monotonic bool }
	Gauge       *struct{}
	Histogram   *struct{}
}

// registry is all that the files of the registry are made of.
type registry struct {
	t          testing.TB
	written    written
	attributes map[string]attribute
	receivers  map[string]receiver
	// canonical are the attributes of the conventions that ml_enrich writes.
	canonical []string
}

func readTable(t testing.TB, path string, to any) {
	t.Helper()
	text, err := os.ReadFile(repository + path)
	require.NoError(t, err)
	require.NoError(t, yaml.Unmarshal(text, to), path)
}

// isOwn reports whether a name is defined here. Others are of the conventions.
func (r *registry) isOwn(name string) bool {
	_, known := r.attributes[name]
	return known || slices.Contains(r.written.Lacking, name) ||
		slices.ContainsFunc(own, func(beginning string) bool { return strings.HasPrefix(name, beginning) })
}

func readRegistry(t testing.TB) *registry {
	t.Helper()
	r := &registry{t: t, written: golden.YAML[written](t, "registry.yaml"), attributes: make(map[string]attribute), receivers: make(map[string]receiver)}
	define := func(a attribute) {
		require.NotContains(t, r.attributes, a.Name, "is defined twice")
		if len(a.Values) > 0 {
			a.Type = "string"
		}
		r.attributes[a.Name] = a
	}
	for _, a := range r.written.Attributes {
		define(a)
	}
	var kinds []string
	for i := range mlattr.Problems {
		kinds = append(kinds, mlattr.Problems[i].Name)
	}
	define(attribute{Name: mlattr.Problem, Doc: "The kind of a problem.", Values: kinds})

	meanings, err := readMeanings("../generated_names.go", "../generated_shared_names.go")
	require.NoError(t, err)
	for _, a := range vocabulary.Attributes() {
		switch _, known := r.attributes[a.Name]; {
		case a.OnlyRead || known:
		case r.isOwn(a.Name):
			meaning := meanings[a.Name]
			define(attribute{Name: a.Name, Type: a.Kind.String(), Doc: meaning, Values: append(listed(meaning), r.written.Values[a.Name]...)})
		default:
			r.canonical = append(r.canonical, a.Name)
		}
	}
	for _, name := range []string{"gpu", "nccl"} {
		var metadata receiver
		readTable(t, "receiver/"+name+"receiver/metadata.yaml", &metadata)
		require.NotEmpty(t, metadata.Metrics)
		r.receivers[name] = metadata
		r.defineOf(&metadata, define)
	}
	return r
}

// defineOf defines the attributes of a receiver's resources, metrics and events, and not those
// of what it reports of itself.
func (r *registry) defineOf(of *receiver, define func(attribute)) {
	add := func(name string, d described) {
		name = cmp.Or(d.NameOverride, name)
		if _, known := r.attributes[name]; known || !r.isOwn(name) {
			return
		}
		kind, known := map[string]string{"string": "string", "int": "int", "double": "double", "bool": "boolean", "slice": "int[]"}[d.Type]
		require.True(r.t, known, d.Type)
		define(attribute{Name: name, Type: kind, Doc: d.Description, Values: d.Enum})
	}
	for _, signals := range []map[string]signal{of.Metrics, of.Events} {
		for _, name := range slices.Sorted(maps.Keys(signals)) {
			for _, key := range signals[name].Attributes {
				add(key, of.Attributes[key])
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(of.ResourceAttributes)) {
		add(name, of.ResourceAttributes[name])
	}
}

// list matches the values that the first sentence of a meaning ends with.
var list = regexp.MustCompile("^[^:]*: (`[a-z_]+`(?:, `[a-z_]+`)*)\\.(?: |$)")

// listed returns the values that a meaning lists and nothing else, or none.
func listed(meaning string) []string {
	found := list.FindStringSubmatch(meaning)
	if found == nil {
		return nil
	}
	return strings.Split(strings.ReplaceAll(found[1], "`", ""), ", ")
}

// attributesFile defines each attribute once, in a group for each beginning.
func (r *registry) attributesFile() string {
	f := newFile("the tables of internal/mlattr and the receivers' metadata.yaml")
	groups := make(map[string][]attribute)
	for _, name := range slices.Sorted(maps.Keys(r.attributes)) {
		beginning := "clients"
		for _, o := range own {
			if strings.HasPrefix(name, o) {
				beginning = strings.TrimSuffix(o, ".")
			}
		}
		groups[beginning] = append(groups[beginning], r.attributes[name])
	}
	for _, beginning := range slices.Sorted(maps.Keys(groups)) {
		brief := "Attributes in the name space " + beginning + "."
		if beginning == "clients" {
			brief = "Attributes without a name space of this project."
		}
		f.group("registry."+beginning, "attribute_group", brief)
		f.line("    attributes:")
		for _, a := range groups[beginning] {
			f.define(&a, r.written.Examples[a.Name])
		}
	}
	f.group("attributes.conventions", "attribute_group", "Attributes of the semantic conventions that ml_enrich writes.")
	f.refs(r.plain(r.canonical))
	return f.text.String()
}

// runLabels are the attributes of a run, rank and host that a series has, where they are known.
var runLabels = []string{mlattr.RunID, mlattr.JobID, mlattr.RankGlobal, mlattr.HostName}

// seriesFile has the metrics of ml_metrics. Those of the conventions are not repeated.
func (r *registry) seriesFile() string {
	var all []struct {
		Name, Unit, Kind, Description string
		Labels                        []string
		NoRun                         bool `yaml:"no_run"`
	}
	readTable(r.t, "connector/mlmetricsconnector/internal/series/series.yaml", &all)
	f := newFile("the series of ml_metrics")
	f.group("attributes.ml_metrics", "attribute_group", "Attributes of a run, which the series about runs and ranks may have.")
	f.refs(r.plain(runLabels))
	for _, s := range all {
		if !r.isOwn(s.Name) {
			continue
		}
		instrument := map[string]string{
			"counter": "counter", "total": "counter", "gauge": "gauge", "histogram": "histogram", "state": "updowncounter", "balance": "updowncounter",
		}[s.Kind]
		require.NotEmpty(r.t, instrument, s.Kind)
		m := metric{name: s.Name, unit: s.Unit, instrument: instrument, doc: s.Description}
		extends := "attributes.ml_metrics"
		if s.NoRun {
			extends, s.Labels = "", append(s.Labels, mlattr.HostName)
		}
		m.refs = r.plain(s.Labels)
		f.metric(&m, extends)
	}
	return f.text.String()
}

func (r *registry) enrichFile() string {
	f := newFile("registry.yaml of internal/mlattr/vocabularypage")
	for _, m := range r.written.Metrics {
		f.metric(&metric{name: m.Name, unit: m.Unit, instrument: m.Instrument, doc: m.Doc, refs: r.plain(m.Labels)}, "")
	}
	return f.text.String()
}

func (r *registry) eventsFile() string {
	f := newFile("registry.yaml of internal/mlattr/vocabularypage")
	for _, e := range r.written.Events {
		f.metric(&metric{name: e.Name, doc: e.Doc, refs: r.plain(e.Attributes)}, "")
	}
	return f.text.String()
}

// receiverFile has the metrics and events of a receiver, and the attributes of its resources.
func (r *registry) receiverFile(name string) string {
	of := r.receivers[name]
	f := newFile("receiver/" + name + "receiver/metadata.yaml")
	f.group("attributes."+name+".resource", "attribute_group", "Attributes of the resources of the receiver "+name+".")
	f.refs(r.plain(slices.Sorted(maps.Keys(of.ResourceAttributes))))
	write := func(signals map[string]signal) {
		for _, signalName := range slices.Sorted(maps.Keys(signals)) {
			if s := signals[signalName]; r.isOwn(signalName) {
				f.metric(r.ofReceiver(&of, signalName, &s), "")
			}
		}
	}
	write(of.Metrics)
	write(of.Events)
	return f.text.String()
}

// ofReceiver returns a metric or event of a receiver.
func (r *registry) ofReceiver(of *receiver, name string, s *signal) *metric {
	m := &metric{name: name, unit: s.Unit, doc: s.Description, note: s.Note}
	switch {
	case s.Sum != nil && s.Sum.Monotonic:
		m.instrument = "counter"
	case s.Sum != nil:
		m.instrument = "updowncounter"
	case s.Histogram != nil:
		m.instrument = "histogram"
	case s.Gauge != nil:
		m.instrument = "gauge"
	}
	for _, key := range s.Attributes {
		d := of.Attributes[key]
		attr := ref{name: cmp.Or(d.NameOverride, key), level: d.Level}
		require.True(r.t, r.isOwn(attr.name) || d.Description != "", attr.name)
		if d.Description != r.attributes[attr.name].Doc {
			attr.doc = d.Description
		}
		m.refs = append(m.refs, attr)
	}
	if slices.ContainsFunc(r.written.Enriched.Beginnings, func(beginning string) bool { return strings.HasPrefix(name, beginning) }) {
		m.refs = append(m.refs, r.plain(r.written.Enriched.Attributes)...)
	}
	return m
}

// plain returns attributes as they are defined, each there where it is known.
func (r *registry) plain(names []string) (refs []ref) {
	for _, name := range names {
		if r.isOwn(name) {
			require.Contains(r.t, r.attributes, name, "no table defines it; registry.yaml can")
		}
		refs = append(refs, ref{name: name})
	}
	return refs
}

// registryFile collects a file of the registry.
type registryFile struct{ text strings.Builder }

func generated(from string) string {
	return `# Generated from ` + from + ` by "go generate". Do not edit.` + "\n"
}

func newFile(from string) *registryFile {
	f := new(registryFile)
	f.line("%sgroups:", generated(from))
	return f
}

func (f *registryFile) line(format string, args ...any) { fmt.Fprintf(&f.text, format+"\n", args...) }

// folded writes a text over as many lines as it takes.
func (f *registryFile) folded(indent, key, text string) {
	if text == "" {
		return
	}
	f.line("%s%s: >-", indent, key)
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len(line)+len(word) >= 100 {
			f.line("%s  %s", indent, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	f.line("%s  %s", indent, line)
}

func (f *registryFile) group(id, kind, brief string) {
	f.line("  - id: %s\n    type: %s\n    stability: development", id, kind)
	f.folded("    ", "brief", brief)
}

// define writes the definition of an attribute.
func (f *registryFile) define(a *attribute, example string) {
	name, isTemplate := strings.CutSuffix(a.Name, ".")
	f.line("      - id: %s\n        stability: development", name)
	switch {
	case len(a.Values) > 0:
		f.line("        type:\n          members:")
		for _, value := range a.Values {
			f.line("            - {id: %s, value: %q, stability: development}", value, value)
		}
	case isTemplate:
		f.line("        type: template[%s]", a.Type)
	default:
		f.line("        type: %s", a.Type)
	}
	f.folded("        ", "brief", a.Doc)
	switch {
	case example == "":
	case strings.HasSuffix(a.Type, "[]"):
		f.line("        examples: [[%q]]", example)
	default:
		f.line("        examples: [%q]", example)
	}
}

// metric writes a metric, or an event where it has no instrument.
func (f *registryFile) metric(m *metric, extends string) {
	if m.instrument == "" {
		f.group("event."+m.name, "event", m.doc)
		f.line("    name: %s", m.name)
	} else {
		f.group("metric."+m.name, "metric", m.doc)
		f.line("    metric_name: %s\n    instrument: %s\n    unit: %q", m.name, m.instrument, m.unit)
	}
	f.folded("    ", "note", m.note)
	if extends != "" {
		f.line("    extends: %s", extends)
	}
	f.refs(m.refs)
}

func (f *registryFile) refs(refs []ref) {
	if len(refs) == 0 {
		return
	}
	f.line("    attributes:")
	for _, r := range refs {
		f.line("      - ref: %s", r.name)
		if r.level == "required" {
			f.line("        requirement_level: required")
		} else {
			f.line("        requirement_level: {conditionally_required: If it is known.}")
		}
		f.folded("        ", "brief", r.doc)
	}
}
