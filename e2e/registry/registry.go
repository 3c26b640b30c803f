package registry

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Registry is a registry of names, with what belongs together resolved.
type Registry struct {
	// Attributes are the definitions by name. A template's name ends in a dot.
	Attributes map[string]Attribute
	Metrics    map[string]Signal
	Events     map[string]Signal
	// References are the names that the registry takes from the semantic conventions.
	References []string
}

// Attribute is the definition of an attribute.
type Attribute struct {
	// Type is a type of the conventions, such as string[]. An enumeration has that of its members.
	Type string
	// Members are the values of an enumeration. Others may follow.
	Members []string
}

// Signal is a metric or an event.
type Signal struct {
	Instrument, Unit string
	// Attributes are those that it says it has.
	Attributes []string
}

// manifest and the types below are what weaver reads of version 1 of its definitions, as far as
// this registry uses it. A key that they lack is an error, as it is to weaver.
type manifest struct {
	SchemaURL    string `yaml:"schema_url"`
	Description  string
	Stability    string
	Dependencies []struct {
		SchemaURL    string `yaml:"schema_url"`
		RegistryPath string `yaml:"registry_path"`
	}
}

type file struct{ Groups []group }

type group struct {
	ID, Type, Stability, Brief, Note string
	Name                             string
	MetricName                       string `yaml:"metric_name"`
	Instrument                       string
	Unit                             *string
	Extends                          string
	Attributes                       []attribute
}

type attribute struct {
	ID, Ref, Stability, Brief, Note string
	Type                            yaml.Node
	Examples                        []any
	RequirementLevel                yaml.Node `yaml:"requirement_level"`
}

type members struct {
	Members []struct {
		ID, Value, Brief, Stability string
	}
}

var (
	instruments = []string{"counter", "gauge", "histogram", "updowncounter"}
	types       = []string{"string", "int", "double", "boolean", "any", "string[]", "int[]", "double[]", "boolean[]"}
	template    = regexp.MustCompile(`^template\[(.+)\]$`)
	schemaURL   = regexp.MustCompile(`^https?://.+/\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$`)
	attrName    = regexp.MustCompile(`^[a-z][a-z0-9_]*(\.[a-z0-9_]+)*$`)
)

// Read reads the registry of a folder. It returns what is wrong with it, in the order of the files.
func Read(folder string) (*Registry, []string) {
	r := &reader{Registry: &Registry{Attributes: make(map[string]Attribute), Metrics: make(map[string]Signal), Events: make(map[string]Signal)}, groups: make(map[string]*group)}
	var about manifest
	r.decode(filepath.Join(folder, "manifest.yaml"), &about)
	for _, url := range append([]string{about.SchemaURL}, urlsOf(&about)...) {
		r.require(schemaURL.MatchString(url), "manifest.yaml: %q is no schema URL with a version", url)
	}
	paths, err := filepath.Glob(filepath.Join(folder, "*.yaml"))
	r.require(err == nil && len(paths) > 1, "%s has no definitions", folder)
	var all []*group
	for _, path := range paths {
		if filepath.Base(path) == "manifest.yaml" {
			continue
		}
		var content file
		r.decode(path, &content)
		for i := range content.Groups {
			all = append(all, &content.Groups[i])
			r.readGroup(&content.Groups[i])
		}
	}
	for _, g := range all {
		r.resolve(g)
	}
	slices.Sort(r.References)
	r.References = slices.Compact(r.References)
	return r.Registry, r.wrong
}

func urlsOf(m *manifest) (urls []string) {
	for _, d := range m.Dependencies {
		urls = append(urls, d.SchemaURL)
	}
	return urls
}

// reader collects what is wrong, so that all of it is said at once.
type reader struct {
	*Registry

	groups map[string]*group
	wrong  []string
}

func (r *reader) require(condition bool, format string, args ...any) {
	if !condition {
		r.wrong = append(r.wrong, fmt.Sprintf(format, args...))
	}
}

func (r *reader) decode(path string, to any) {
	text, err := os.ReadFile(path) //nolint:gosec // a file of the registry
	r.require(err == nil, "%v", err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	err = decoder.Decode(to)
	r.require(err == nil, "%s: %v", filepath.Base(path), err)
}

// readGroup checks a group for itself, and takes the attributes that it defines.
func (r *reader) readGroup(g *group) {
	r.require(g.ID != "" && r.groups[g.ID] == nil, "%s: the id is missing or there twice", g.ID)
	r.groups[g.ID] = g
	r.require(g.Brief != "", "%s has no brief", g.ID)
	r.require(g.Stability == "development", "%s is %q, and docs/stability.md promises no name", g.ID, g.Stability)
	isMetric := g.Type == "metric"
	r.require(isMetric == (g.MetricName != "") && isMetric == (g.Instrument != "") && isMetric == (g.Unit != nil), "%s: metrics, and no others, have a metric_name, an instrument and a unit", g.ID)
	switch g.Type {
	case "metric":
		r.require(g.ID == "metric."+g.MetricName, "%s is not the id of %s", g.ID, g.MetricName)
		r.require(slices.Contains(instruments, g.Instrument), "%s is a %s", g.ID, g.Instrument)
	case "event":
		r.require(g.ID == "event."+g.Name, "%s is not the id of %s", g.ID, g.Name)
	case "attribute_group":
		r.require(g.Extends != "" || len(g.Attributes) > 0, "%s has no attributes", g.ID)
	default:
		r.require(false, "%s is a %q", g.ID, g.Type)
	}
	for i := range g.Attributes {
		if a := &g.Attributes[i]; a.ID != "" {
			r.define(g, a)
		}
	}
}

// define takes the definition of an attribute.
func (r *reader) define(g *group, a *attribute) {
	r.require(a.Ref == "", "%s: %s is a definition and a reference", g.ID, a.ID)
	r.require(attrName.MatchString(a.ID), "%s: %s is no name", g.ID, a.ID)
	r.require(a.Brief != "" && a.Stability == "development", "%s has no brief or another stability", a.ID)
	name, defined := a.ID, Attribute{}
	switch a.Type.Kind {
	case yaml.ScalarNode:
		defined.Type = a.Type.Value
		if inner := template.FindStringSubmatch(a.Type.Value); inner != nil {
			name, defined.Type = a.ID+".", inner[1]
		}
	case yaml.MappingNode:
		var m members
		err := a.Type.Decode(&m)
		r.require(err == nil && len(m.Members) > 0, "%s: %v", a.ID, err)
		defined.Type = "string"
		for _, member := range m.Members {
			r.require(member.ID != "" && member.Stability == "development", "%s: %s has no id or another stability", a.ID, member.Value)
			r.require(!slices.Contains(defined.Members, member.Value), "%s: %s is there twice", a.ID, member.Value)
			defined.Members = append(defined.Members, member.Value)
		}
	}
	r.require(slices.Contains(types, defined.Type), "%s is a %q", a.ID, defined.Type)
	r.require(!strings.HasPrefix(defined.Type, "string") || len(defined.Members) > 0 || len(a.Examples) > 0, "%s has no example", a.ID)
	_, twice := r.Attributes[name]
	r.require(!twice, "%s is defined twice", name)
	r.Attributes[name] = defined
}

// resolve finds what a group refers to, once all are read.
func (r *reader) resolve(g *group) {
	signal := Signal{Instrument: g.Instrument}
	if g.Unit != nil {
		signal.Unit = *g.Unit
	}
	for of := g; of != nil; of = r.groups[of.Extends] {
		r.require(of.Extends == "" || r.groups[of.Extends] != nil, "%s extends %s, which is no group", of.ID, of.Extends)
		for _, a := range of.Attributes {
			if a.Ref != "" {
				r.require(!slices.Contains(signal.Attributes, a.Ref), "%s has %s twice", g.ID, a.Ref)
				signal.Attributes = append(signal.Attributes, a.Ref)
			}
		}
	}
	for _, name := range signal.Attributes {
		if _, ok := r.Find(name); !ok {
			r.References = append(r.References, name)
		}
	}
	switch g.Type {
	case "metric":
		r.Metrics[g.MetricName] = signal
	case "event":
		r.Events[g.Name] = signal
	}
}

// Find returns the definition of an attribute, or of the template that it is one of.
func (r *Registry) Find(name string) (Attribute, bool) {
	if a, ok := r.Attributes[name]; ok {
		return a, true
	}
	for end := len(name); ; {
		end = strings.LastIndexByte(name[:end], '.')
		if end < 0 {
			return Attribute{}, false
		}
		if a, ok := r.Attributes[name[:end+1]]; ok {
			return a, true
		}
	}
}
