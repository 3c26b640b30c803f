// Package unwrap finds the lines of a program within what launchers and terminals make of
// them. What container runtimes make of them is read by the operator container of file_log.
package unwrap

import (
	"regexp"
	"strconv"
	"strings"
)

// Line is one line of a program.
type Line struct {
	Text string
	// Process tells apart the processes whose lines a launcher has mixed: what it put
	// before the line, "" for nothing.
	Process string
	// Rank is the rank in the job and LocalRank that on the host, -1 if unknown.
	Rank, LocalRank int64
}

// escapes are escape sequences of terminals: control sequences, titles, and others of one
// character.
var escapes = regexp.MustCompile(`\x1b(?:\[[ -?]*[@-~]?|\][^\a]*\a|(?s:.))?`)

// Plain removes colours and other escape sequences of terminals.
func Plain(text string) string {
	if strings.IndexByte(text, '\x1b') < 0 {
		return text
	}
	return escapes.ReplaceAllLiteralString(text, "")
}

// maxPrefixes is how many launchers are read of a line: srun around torchrun around torch.
const maxPrefixes = 3

// Prefixed reads what launchers put before a line.
func Prefixed(text string) Line {
	l := Line{Text: text, Rank: -1, LocalRank: -1}
	for range maxPrefixes {
		n := l.prefix()
		if n == 0 {
			break
		}
		l.Text = l.Text[n:]
	}
	l.Process = strings.TrimRight(text[:len(text)-len(l.Text)], " ")
	return l
}

// maxPrefix limits the length of one prefix.
const maxPrefix = 96

// prefixes are [default0]:text of torchrun --tee, [rank3]: text and [rank3]:[W...] of PyTorch,
// which indents nothing by one blank, (TrainWorker pid=2630, ip=10.0.0.7) text of Ray, and
// 12: text of srun --label, which aligns numbers to the right.
var prefixes = regexp.MustCompile(`^(?:\[([A-Za-z_-]+)(\d{1,9})\]: ?|\((?:[^)]|\)[^ ])* pid=(?:[^)]|\)[^ ])*\) | {0,7}(\d{1,8}): )`)

// prefix reads one prefix and returns its length, or 0.
func (l *Line) prefix() int {
	// Most lines have none, and no need of the expression.
	begin := l.Text[:min(len(l.Text), 10)]
	if begin == "" || strings.IndexByte("[( 0123456789", begin[0]) < 0 || begin[0] != '[' && begin[0] != '(' && !strings.Contains(begin, ": ") {
		return 0
	}
	found := prefixes.FindStringSubmatch(l.Text[:min(len(l.Text), maxPrefix)])
	if found == nil {
		return 0
	}
	number, err := strconv.ParseInt(found[2]+found[3], 10, 32)
	switch role := found[1]; {
	case err != nil: // Ray names no rank
	case role == "rank":
		l.Rank = number
	case role != "":
		l.LocalRank = number
	case l.Rank >= 0:
		return 0
	default:
		l.Rank = number
	}
	return len(found[0])
}
