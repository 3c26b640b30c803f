// The references command shortens the documentation.md files of mdatagen, which describe an
// attribute again below each metric that has it. An attribute of several metrics is
// described once, in a table at the end of the file, and the metrics list its name. A file
// that it has already written stays as it is. Its argument is the repository's root.
package main

//go:generate go run . ../..

import (
	"fmt"
	"os"
	"path/filepath"
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

// heading is the line above each table of attributes.
const heading = "#### Attributes"

// An attribute is what a row of a table of attributes says. Tables of events and of a
// component's own metrics have no level.
type attribute struct{ name, description, values, level string }

// shorten returns the text with each attribute of several tables in one table at the end.
// Attributes that share a name and differ otherwise stay where they are.
func shorten(text string) (string, error) {
	parts := strings.Split(text, "\n"+heading+"\n\n")
	var tables [][]string
	uses := make(map[string]int)
	shared := make(map[string]*attribute)
	var order []string
	for i, part := range parts[1:] {
		end := len(strings.TrimSuffix(part, "\n"))
		if at := strings.Index(part, "\n\n"); at >= 0 {
			end = at
		}
		table := strings.Split(part[:end], "\n")
		tables, parts[i+1] = append(tables, table), part[end:]
		for _, row := range table[2:] {
			a, err := parse(row)
			if err != nil {
				return "", err
			}
			uses[a.name]++
			first := shared[a.name]
			switch {
			case uses[a.name] == 1:
				shared[a.name] = &a
				order = append(order, a.name)
			case first == nil || first.description != a.description || first.values != a.values:
				shared[a.name] = nil
			case first.level == "-":
				first.level = a.level
			}
		}
	}
	var b strings.Builder
	b.WriteString(parts[0])
	for i, table := range tables {
		var names, own []string
		for _, row := range table[2:] {
			if a, _ := parse(row); shared[a.name] != nil && uses[a.name] > 1 {
				names = append(names, "`"+a.name+"`")
			} else {
				own = append(own, row)
			}
		}
		b.WriteString("\nAttributes")
		if len(names) > 0 {
			b.WriteString(": " + strings.Join(names, ", "))
		}
		if len(own) > 0 {
			if len(names) > 0 {
				b.WriteString(", and")
			}
			b.WriteString(":\n\n" + strings.Join(append(table[:2:2], own...), "\n"))
		} else {
			b.WriteString(".")
		}
		b.WriteString(parts[i+1])
	}
	title := "\n## Attributes of several metrics or events\n\n| Name | Description | Values | Requirement Level |\n| ---- | ----------- | ------ | ----------------- |\n"
	for _, name := range order {
		if a := shared[name]; a != nil && uses[name] > 1 {
			fmt.Fprintf(&b, "%s| %s | %s | %s | %s |\n", title, a.name, a.description, a.values, a.level)
			title = ""
		}
	}
	return b.String(), nil
}

// parse reads a row of a table of attributes.
func parse(row string) (attribute, error) {
	cells := strings.Split(strings.Trim(row, "| "), " | ")
	switch len(cells) {
	case 4:
		return attribute{cells[0], cells[1], cells[2], "-"}, nil
	case 5:
		return attribute{cells[0], cells[1], cells[2], cells[3]}, nil
	default:
		return attribute{}, fmt.Errorf("the row of an attribute has %d cells: %s", len(cells), row)
	}
}
