package reproductions

import (
	"regexp"
	"slices"
	"strings"
)

// needs are what a command needs, as a report says it.
type needs struct {
	// replays reports whether the script calls what failed.
	replays bool
	// flags are the words after the script: flags, each before the word in capitals
	// that stands for what only the user knows.
	flags []string
	// others are what else is needed, such as a Python module.
	others []string
	// why says why the script does not call what failed.
	why string
}

const (
	// maxFlags is the length of a command's flags, in bytes; longer ones are no
	// command to copy.
	maxFlags  = 4096
	maxOthers = 16
)

// Of what a report says before it shows anything that was recorded: the command,
// and what it needs.
var (
	toReproduce = regexp.MustCompile("\n## To reproduce\n\n```\npython3 repro\\.py --dry-run\npython3 repro\\.py([^\n]*)\n```\n")
	noReplay    = regexp.MustCompile("\nNothing can be replayed: ([^\n]*)\\.\n")
	itNeeds     = regexp.MustCompile("\nIt needs:\n\n((?:- [^\n]*\n)+)")
)

// needsOf reads a report. What was recorded cannot pretend to be the command,
// because it comes after it.
func needsOf(report []byte) needs {
	head, _, _ := strings.Cut(string(report), "\n## Error\n")
	var n needs
	command := toReproduce.FindStringSubmatch(head)
	if command == nil || len(command[1]) > maxFlags {
		if why := noReplay.FindStringSubmatch(head); why != nil {
			n.why = limited(strings.ReplaceAll(why[1], "`", ""))
		}
		return n
	}
	n.replays, n.flags = true, filled(strings.Fields(command[1]))
	if list := itNeeds.FindStringSubmatch(head); list != nil {
		for line := range strings.Lines(list[1]) {
			if len(n.others) < maxOthers {
				n.others = append(n.others, limited(strings.TrimSpace(strings.TrimPrefix(line, "- "))))
			}
		}
	}
	return n
}

// filled returns those of the words that a command to copy may have: flags whose
// value its user fills in. Whatever a report says, a flag that permits something,
// or has a value from telemetry, is typed by who wants it.
func filled(words []string) []string {
	var out []string
	for i := 1; i < len(words); i++ {
		if flag := words[i-1]; flagName.MatchString(flag) && !strings.HasPrefix(flag, "--allow") && slices.Contains(placeholders, words[i]) {
			out = append(out, flag, words[i])
		}
	}
	return out
}

var flagName = regexp.MustCompile(`^--[a-z-]+$`)

// requires returns the flags with their values, and what else is needed.
func (n *needs) requires() []string {
	var out []string
	for pair := range slices.Chunk(n.flags, 2) {
		out = append(out, pair[0]+" "+pair[1])
	}
	return append(out, n.others...)
}

// placeholders are the words that stand for what only the user knows.
var placeholders = []string{"URL", "FILE", "PATH", "PATH=VALUE"}

// fill returns the placeholders in the flags.
func (n *needs) fill() []string {
	var out []string
	for _, word := range n.flags {
		if slices.Contains(placeholders, word) && !slices.Contains(out, word) {
			out = append(out, word)
		}
	}
	return out
}
