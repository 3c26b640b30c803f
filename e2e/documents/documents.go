// Package documents finds the fenced blocks of the project's Markdown files:
// the configurations, commands and queries that a reader may copy, which the
// tests load and run.
package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Block is one fenced block of a document.
type Block struct {
	// File is the document's path below the repository's root, and Line that of
	// the opening fence.
	File string
	Line int
	// Section is the last heading above the block, without its marks.
	Section string
	// Language is the first word behind the fence, and Info what follows it.
	Language string
	Info     string
	Text     string
}

// patterns are where the project's documents are.
var patterns = []string{
	"*.md", "docs/*.md", "docs/*/*.md",
	"receiver/*/*.md", "processor/*/*.md", "exporter/*/*.md", "connector/*/*.md", "extension/*/*.md",
	"cmd/*/*.md", "docker/*.md", "docker/*/*.md", "examples/*.md", "examples/*/*.md", "e2e/*.md",
}

// Files returns all documents below the repository's root, as paths below it.
// documentation.md is generated, with placeholders in its YAML, and left out.
func Files(root string) ([]string, error) {
	var files []string
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(pattern)))
		if err != nil {
			return nil, err
		}
		for _, file := range found {
			if filepath.Base(file) == "documentation.md" {
				continue
			}
			name, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			files = append(files, name)
		}
	}
	return files, nil
}

// All returns the blocks of all documents below the repository's root.
func All(root string) ([]Block, error) {
	files, err := Files(root)
	if err != nil {
		return nil, err
	}
	var blocks []Block
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file)) //nolint:gosec // a document of the repository
		if err != nil {
			return nil, err
		}
		blocks = append(blocks, Parse(file, string(text))...)
	}
	return blocks, nil
}

var (
	fence   = regexp.MustCompile("^( *)(`{3,}|~{3,}) *([a-zA-Z]*)(.*)$")
	heading = regexp.MustCompile(`^#+ +(.*)$`)
)

// Parse returns the blocks of a document. A block in a list item is indented
// like its fence.
func Parse(file, text string) []Block {
	var blocks []Block
	var open []string
	var current Block
	section := ""
	for number, line := range strings.Split(text, "\n") {
		match := fence.FindStringSubmatch(line)
		switch {
		case open == nil && match != nil:
			open = match
			current = Block{File: file, Line: number + 1, Section: section, Language: match[3], Info: strings.TrimSpace(match[4])}
		case open == nil:
			if title := heading.FindStringSubmatch(line); title != nil {
				section = title[1]
			}
		case match != nil && strings.HasPrefix(match[2], open[2]) && match[3] == "" && strings.TrimSpace(match[4]) == "":
			blocks = append(blocks, current)
			open = nil
		default:
			current.Text += strings.TrimPrefix(line, open[1]) + "\n"
		}
	}
	return blocks
}

// Of returns the blocks of one of the languages.
func Of(blocks []Block, languages ...string) []Block {
	var found []Block
	for _, block := range blocks {
		if slices.Contains(languages, block.Language) {
			found = append(found, block)
		}
	}
	return found
}

// Option returns the value of name=value in the block's info.
func (b Block) Option(name string) (value string, found bool) {
	for word := range strings.FieldsSeq(b.Info) {
		if value, found = strings.CutPrefix(word, name+"="); found {
			return value, true
		}
	}
	return "", false
}

// comment is what a command's line ends with for its reader.
var comment = regexp.MustCompile(`\s+# .*$`)

// Commands returns what a console block has a reader type: the lines behind a
// prompt "$ ", without comments. A line that ends in a backslash goes on.
func (b Block) Commands() []string {
	var commands []string
	goesOn := false
	for line := range strings.Lines(b.Text) {
		line = strings.TrimRight(line, "\n")
		command, prompted := strings.CutPrefix(line, "$ ")
		switch {
		case goesOn:
			command = commands[len(commands)-1] + " " + strings.TrimSpace(line)
			commands = commands[:len(commands)-1]
		case !prompted:
			continue
		}
		command = comment.ReplaceAllString(command, "")
		command, goesOn = strings.CutSuffix(command, "\\")
		commands = append(commands, strings.TrimSpace(command))
	}
	return commands
}

// ServerCommand is a command that asks Prometheus or Jaeger on their usual ports.
// Its groups are the URL and what the answer is searched for.
var ServerCommand = regexp.MustCompile(`curl -sf '?(http://127\.0\.0\.1:(?:9090|16686)/[^' ]*)'?(?: \| grep (?:-E )?'?([^']+?)'?)?`)

// Merge adds lines to a configuration as a second --config does: maps are joined,
// lists and values replaced.
func Merge(config, lines map[string]any) {
	for key, value := range lines {
		fields, isMap := value.(map[string]any)
		present, wasMap := config[key].(map[string]any)
		if isMap && wasMap {
			Merge(present, fields)
			continue
		}
		config[key] = value
	}
}
