package format

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-ml/otelcol-ml/connector/mllinesconnector/internal/unwrap"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

//go:embed formats/*.yaml
var files embed.FS

// Shipped returns the formats of the folder formats, sorted by name. The caller must not
// change them. A file that is wrong is an error of the program.
var Shipped = sync.OnceValue(func() (all []*Format) {
	names, _ := fs.Glob(files, "formats/*.yaml") // a pattern that is none is the only error
	for _, name := range names {
		text, _ := files.ReadFile(name) // it is a part of the program
		f, err := parse(text)
		if err != nil {
			panic(fmt.Errorf("%s: %w", name, err))
		}
		all = append(all, f)
	}
	return all
})

func parse(text []byte) (*Format, error) {
	retrieved, err := confmap.NewRetrievedFromYAML(text)
	if err != nil {
		return nil, err
	}
	conf, err := retrieved.AsConf()
	if err != nil {
		return nil, err
	}
	f := new(Format)
	if err := conf.Unmarshal(f); err != nil {
		return nil, err
	}
	return f, f.compile(f.Name)
}

const (
	// maxRules limits the rules of a Set: each line is searched for the text of each.
	maxRules = 512
	// maxTried limits the rules whose patterns are tried on a line, far above those whose
	// texts a line of a program has.
	maxTried = 8
)

// Set are formats that lines are read by. It is safe for concurrent use.
type Set struct{ rules []*Rule }

// Rules returns the rules of all formats, in the order in which they are tried. They must not
// be changed.
func (s *Set) Rules() []*Rule { return s.rules }

// New returns a Set of a user's formats and of those that are shipped. A user's format goes
// before, and replaces a shipped one of the same name. Every example must be read as it
// says.
func New(own []Format) (*Set, error) {
	s, known := &Set{}, map[string]bool{}
	for i := range own {
		f, key := &own[i], fmt.Sprintf("formats::%d", i)
		if known[f.Name] {
			return nil, fmt.Errorf("%s::name: %q is the name of two formats", key, f.Name)
		}
		if err := f.compile(key); err != nil {
			return nil, err
		}
		known[f.Name] = true
		s.add(f)
	}
	for _, f := range Shipped() {
		if !known[f.Name] {
			s.add(f)
		}
	}
	if len(s.rules) > maxRules {
		return nil, fmt.Errorf("formats: have %d rules, at most %d are allowed", len(s.rules), maxRules)
	}
	return s, nil
}

// add adds the rules of a format.
func (s *Set) add(f *Format) {
	for i := range f.Lines {
		s.rules = append(s.rules, &f.Lines[i])
	}
}

// check reads the format's examples by its own rules.
func (f *Format) check(key string) error {
	own := &Set{}
	own.add(f)
	for i := range f.Examples {
		e := &f.Examples[i]
		if got := own.Lines(e.Text); strings.Join(got, "\n") != strings.Join(e.Reads, "\n") {
			return fmt.Errorf("%s::examples::%d::reads: are %q, but the text is read as %q", key, i, e.Reads, got)
		}
	}
	return nil
}

// Ends are the ends of lines, and of parts of lines that a terminal overwrites.
const Ends = "\n\r\b"

// Lines returns what lines say, each as Reading.String has it.
func (s *Set) Lines(text string) (reads []string) {
	var open *Reading
	closes := func() {
		if open != nil {
			reads = append(reads, open.String())
		}
		open = nil
	}
	for _, line := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(Ends, c) }) {
		if open != nil && open.Continue(line) {
			continue
		}
		closes()
		for _, r := range s.Read(unwrap.Prefixed(unwrap.Plain(line)).Text, nil) {
			if r.Block != "" {
				open = &r
				continue
			}
			reads = append(reads, r.String())
		}
	}
	closes()
	return reads
}

// Read appends what a line says to readings, at most one of each kind.
func (s *Set) Read(line string, readings []Reading) []Reading {
	first, tried := len(readings), 0
	for _, rule := range s.rules {
		if !strings.Contains(line, rule.Has) {
			continue
		}
		if mlattr.Find(readings[first:], func(r *Reading) bool { return r.kind == rule.kind }) != nil {
			continue
		}
		if tried++; tried > maxTried {
			break
		}
		readings = append(readings, Reading{Rule: rule})
		if !rule.read(line, &readings[len(readings)-1]) {
			readings = readings[:len(readings)-1]
		}
	}
	return readings
}

// Continue reads the next line of a block. It reports whether it is one.
func (r *Reading) Continue(line string) bool {
	if !strings.HasPrefix(line, r.Block) {
		return false
	}
	r.fields(line)
	return true
}

func (r *Rule) read(line string, into *Reading) bool {
	begin := 0
	if r.pattern != nil {
		at := r.pattern.FindStringSubmatchIndex(line)
		if at == nil {
			return false
		}
		begin = at[0]
		for i, name := range r.groups {
			if name != "" && at[2*i] >= 0 {
				into.read(name, line[at[2*i]:at[2*i+1]])
			}
		}
	}
	into.fields(line[begin:])
	_, numbered := into.Get(StepNumber)
	return numbered || r.kind != Step && r.kind != Bar
}

// fields reads the values that have a text before them.
func (r *Reading) fields(line string) {
	for i := range r.labels {
		l := &r.labels[i]
		for rest := line; ; {
			at := strings.Index(rest, l.text)
			if at < 0 {
				break
			}
			before, after := rest[:at], rest[at+len(l.text):]
			if !isWord(l.text[0]) || before == "" || !isWord(before[len(before)-1]) {
				if number, ok := leading(after); ok {
					r.read(l.name, number)
				}
				break
			}
			rest = after
		}
	}
}
