package reproductions

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
)

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
	noReplay    = regexp.MustCompile("\nNo replay: ([^\n]*)\\.\n")
	itNeeds     = regexp.MustCompile("\nIt needs:\n\n((?:- [^\n]*\n)+)")
)

// describe adds the command that runs a script, and what it needs by its report. What was
// recorded cannot pretend to be the command, because it comes after it.
func describe(f *api.Failure, script string, report []byte) {
	f.Command = "python3 " + shellQuote(script)
	head, _, _ := strings.Cut(string(report), "\n## Error\n")
	command := toReproduce.FindStringSubmatch(head)
	if command == nil || len(command[1]) > maxFlags {
		if why := noReplay.FindStringSubmatch(head); why != nil {
			f.Why = limited(strings.ReplaceAll(why[1], "`", ""))
		}
		return
	}
	f.Replays = true
	words := strings.Fields(command[1])
	for i := 1; i < len(words); i++ {
		if flag, value := words[i-1], words[i]; mayFill(flag, value) {
			f.Command += " " + flag + " " + value
			f.Requires = append(f.Requires, flag+" "+value)
			if !slices.Contains(f.Fill, value) {
				f.Fill = append(f.Fill, value)
			}
		}
	}
	if list := itNeeds.FindStringSubmatch(head); list != nil {
		others := slices.Collect(strings.Lines(list[1]))
		for _, line := range others[:min(len(others), maxOthers)] {
			f.Requires = append(f.Requires, limited(strings.TrimSpace(strings.TrimPrefix(line, "- "))))
		}
	}
}

// mayFill reports whether a command to copy may have a flag of a report: one whose value its
// user fills in. Whatever a report says, a flag that permits something, or has a value from
// telemetry, is typed by who wants it.
func mayFill(flag, value string) bool {
	return flagName.MatchString(flag) && !strings.HasPrefix(flag, "--allow") && slices.Contains(placeholders, value)
}

var flagName = regexp.MustCompile(`^--[a-z-]+$`)

// placeholders are the words that stand for what only the user knows.
var placeholders = []string{"URL", "FILE", "PATH", "PATH=VALUE"}

var (
	// bareWord is an argument that needs no quotes, shownWord one that a terminal shows.
	bareWord  = regexp.MustCompile(`^[@%+=:,./_0-9A-Za-z-]+$`)
	shownWord = regexp.MustCompile(`^[ -~]*$`)
)

// shellQuote quotes an argument so that a shell reads it as one word and a
// terminal shows all of it. If a terminal would not show it as it is, it uses
// the $'…' form of POSIX 2024, which bash, zsh and ksh read; otherwise single
// quotes, or none if they are not needed.
func shellQuote(argument string) string {
	switch {
	case bareWord.MatchString(argument):
		return argument
	case shownWord.MatchString(argument):
		return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
	}
	var out strings.Builder
	for _, c := range []byte(strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(argument)) {
		if c < 0x20 || c > 0x7e {
			// Octal escapes end after three digits in every shell; a hex
			// escape would swallow a digit that follows it.
			fmt.Fprintf(&out, `\%03o`, c)
		} else {
			out.WriteByte(c)
		}
	}
	return "$'" + out.String() + "'"
}
