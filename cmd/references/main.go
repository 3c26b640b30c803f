// The references command shortens the documentation.md files of mdatagen, which have a table
// for the kind of each metric and describe an attribute again below each metric that has it.
// A metric's kind becomes a line. An attribute of several metrics is described once, at the
// end of the file, and the metrics list its name; what most metrics of a section have is
// listed at its beginning. A file that it has already written stays as it is. Its argument
// is the repository's root.
package main

//go:generate go run . ../..

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "references: want one argument: the repository's root")
		os.Exit(1)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "references:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	files, err := filepath.Glob(filepath.Join(root, "*", "*", "documentation.md"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no documentation.md in the components below %q: %w", root, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file) // #nosec G304 G703 -- a file of this repository
		if err != nil {
			return err
		}
		short, err := shorten(string(text))
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := os.WriteFile(file, []byte(short), 0o644); err != nil { // #nosec G306 G703 -- a page for everyone
			return err
		}
	}
	return nil
}

// legend says below the title what the short form leaves out.
const legend = "Unless stated otherwise a metric is in development, a sum is cumulative, and an attribute is text and always there.\n"

// end is the heading of the attributes that several metrics have.
const end = "## Attributes of several metrics or events"

// An attribute is a row of a table of attributes: of a metric, an event, one of the
// component's own metrics, or a resource.
type attribute struct{ name, description, values, note string }

// A section is what a second-level heading begins.
type section struct {
	blocks []block
	// usual are the shared attributes of most metrics here.
	usual []string
}

// A block is text as it is, or what a table says.
type block struct {
	text string
	// kind is the line of a metric's kind.
	kind       string
	attributes []attribute
	// resource reports whether the attributes are a resource's, which only refer to others.
	resource, table bool
}

// shorten returns the text without its tables. Attributes that share a name and differ
// otherwise stay where they are.
func shorten(text string) (string, error) {
	sections, err := read(text)
	if err != nil {
		return "", err
	}
	shared, order := several(sections)
	found := false
	var b strings.Builder
	for i := range sections {
		s := &sections[i]
		s.usual = usual(s, shared)
		for _, part := range s.blocks {
			found = found || part.table || part.kind != ""
		}
		s.write(&b, shared)
	}
	if !found {
		return text, nil
	}
	if len(order) > 0 {
		fmt.Fprintf(&b, "\n%s\n\n", end)
	}
	for _, name := range order {
		b.WriteString(shared[name].line())
	}
	title, rest, _ := strings.Cut(b.String(), "\n\n## ")
	return title + "\n\n" + legend + "\n## " + rest, nil
}

// read returns the sections of a text of mdatagen.
func read(text string) ([]section, error) {
	sections := []section{{}}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		if strings.HasPrefix(line, "## ") {
			sections = append(sections, section{})
		}
		s := &sections[len(sections)-1]
		switch {
		case line == "#### Attributes":
			i++ // and the blank line below it
		case strings.HasPrefix(line, "| Unit |"):
			kind, err := kindOf(cells(line), cells(lines[i+2]))
			if err != nil {
				return nil, err
			}
			s.blocks = append(s.blocks, block{kind: kind})
			i += 2
		case strings.HasPrefix(line, "| Name |"):
			part := block{table: true, resource: slices.Contains(cells(line), "Enabled")}
			for i += 2; i < len(lines) && strings.HasPrefix(lines[i], "|"); i++ {
				a, err := parse(cells(line), cells(lines[i]))
				if err != nil {
					return nil, err
				}
				part.attributes = append(part.attributes, a)
			}
			i--
			s.blocks = append(s.blocks, part)
		default:
			s.blocks = append(s.blocks, block{text: line})
		}
	}
	return sections, nil
}

// several returns the attributes that more than one metric or event has, and their names in
// the order in which they come.
func several(sections []section) (shared map[string]*attribute, order []string) {
	shared = make(map[string]*attribute)
	uses := make(map[string]int)
	for _, s := range sections {
		for _, part := range s.blocks {
			if part.resource {
				continue
			}
			for _, a := range part.attributes {
				uses[a.name]++
				first := shared[a.name]
				switch {
				case uses[a.name] == 1:
					shared[a.name] = &a
					order = append(order, a.name)
				case first == nil || first.description != a.description || first.values != a.values:
					shared[a.name] = nil
				case first.note == "":
					first.note = a.note
				}
			}
		}
	}
	order = slices.DeleteFunc(order, func(name string) bool {
		if uses[name] > 1 && shared[name] != nil {
			return false
		}
		delete(shared, name)
		return true
	})
	return shared, order
}

// usual returns the shared attributes that more than half of a section's metrics have.
func usual(s *section, shared map[string]*attribute) []string {
	tables := 0
	uses := make(map[string]int)
	var order []string
	for _, part := range s.blocks {
		if !part.table || part.resource {
			continue
		}
		tables++
		for _, a := range part.attributes {
			if uses[a.name]++; uses[a.name] == 1 && shared[a.name] != nil {
				order = append(order, a.name)
			}
		}
	}
	if tables < 3 {
		return nil
	}
	return slices.DeleteFunc(order, func(name string) bool { return uses[name]*2 <= tables })
}

// write writes a section. The usual attributes are listed below its heading.
func (s *section) write(b *strings.Builder, shared map[string]*attribute) {
	open := false // a line of a kind that goes on
	for i, part := range s.blocks {
		if open && !part.table && part.text != "" {
			b.WriteString("\n\n")
			open = false
		}
		switch {
		case part.kind != "":
			b.WriteString(part.kind)
			open = true
		case part.table:
			if open {
				b.WriteString(" ")
			}
			s.list(b, part, shared)
			open = false
		case open:
		default:
			b.WriteString(part.text + "\n")
		}
		if i == 0 && len(s.usual) > 0 {
			fmt.Fprintf(b, "\nThe usual attributes here are %s.\n", codes(s.usual))
		}
	}
	if open {
		b.WriteString("\n")
		if s.blocks[len(s.blocks)-1].text == "" && s.blocks[len(s.blocks)-1].kind == "" {
			b.WriteString("\n")
		}
	}
}

// list writes the attributes of a metric, an event or a resource: the names of shared ones,
// and a line for each of the others.
func (s *section) list(b *strings.Builder, part block, shared map[string]*attribute) {
	var names []string
	var own []attribute
	for _, a := range part.attributes {
		if first := shared[a.name]; first != nil && (!part.resource || first.description == a.description && a.note == "") {
			names = append(names, a.name)
		} else {
			own = append(own, a)
		}
	}
	lead := "Attributes: "
	if len(s.usual) > 0 && !slices.ContainsFunc(s.usual, func(name string) bool { return !slices.Contains(names, name) }) {
		lead = "The usual attributes"
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(s.usual, name) })
		if len(names) > 0 {
			lead += ", "
		}
	}
	b.WriteString(strings.TrimSpace(lead + codes(names)))
	switch {
	case len(own) == 0:
		b.WriteString(".\n")
		return
	case strings.HasSuffix(b.String(), ":"):
		b.WriteString("\n\n")
	default:
		b.WriteString(", and:\n\n")
	}
	for _, a := range own {
		b.WriteString(a.line())
	}
}

// line is an attribute as an item of a list.
func (a *attribute) line() string {
	text := "- `" + a.name + "`: " + a.description
	for _, more := range []string{a.values, a.note} {
		if more != "" {
			text += " " + more + "."
		}
	}
	return text + "\n"
}

func codes(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}

func cells(row string) []string {
	list := strings.Split(strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|"), " | ")
	for i := range list {
		list[i] = strings.TrimSpace(list[i])
	}
	return list
}

// kindOf returns a metric's kind, value and unit in words.
func kindOf(head, row []string) (string, error) {
	if len(head) != len(row) {
		return "", fmt.Errorf("the row of a metric has %d cells: %q", len(row), row)
	}
	values := make(map[string]string)
	for i, name := range head {
		values[name] = row[i]
	}
	kind := values["Metric Type"]
	switch {
	case kind == "Sum" && values["Monotonic"] == "true":
		kind = "Counter"
	case kind == "Sum":
		kind = "Up-down counter"
	}
	text := kind + ", " + values["Value Type"]
	if unit := values["Unit"]; unit != "" {
		text += ", `" + unit + "`"
	}
	for _, other := range [][2]string{{"Aggregation Temporality", "Cumulative"}, {"Stability", "Development"}} {
		if value := values[other[0]]; value != "" && value != other[1] {
			text += ", " + value
		}
	}
	return text + ".", nil
}

// parse reads a row of a table of attributes.
func parse(head, row []string) (attribute, error) {
	if len(row) != len(head) || len(row) < 4 {
		return attribute{}, fmt.Errorf("the row of an attribute has %d cells: %s", len(row), strings.Join(row, " | "))
	}
	a := attribute{name: row[0], description: row[1]}
	values := strings.TrimPrefix(strings.ReplaceAll(row[2], "``", "`"), "Str: ")
	if values = strings.TrimPrefix(values, "Any "); values != "Str" {
		a.values = values
	}
	for i, name := range head[3:] {
		switch value := row[i+3]; {
		case name == "Requirement Level" && value == "Conditionally Required":
			a.note = "Conditional"
		case name == "Requirement Level" && value != "Required" && value != "-":
			a.note = value
		case name == "Enabled" && value != "true":
			a.note = "Off by default"
		}
	}
	return a, nil
}
