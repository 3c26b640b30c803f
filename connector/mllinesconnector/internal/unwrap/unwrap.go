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

// prefix reads one prefix and returns its length, or 0.
func (l *Line) prefix() int {
	text := l.Text
	if text == "" {
		return 0
	}
	switch c := text[0]; {
	case c == '[':
		// torchrun --tee: [default0]:text. PyTorch: [rank3]:text, also [rank3]:[W...]
		end := strings.Index(text[:min(len(text), maxPrefix)], "]:")
		if end < 0 || strings.IndexByte(text[1:end], '[') >= 0 {
			return 0
		}
		name := strings.TrimRight(text[1:end], "0123456789")
		number, err := strconv.ParseInt(text[1+len(name):end], 10, 32)
		if err != nil || name == "" || !isName(name) {
			return 0
		}
		if name == "rank" {
			l.Rank = number
		} else {
			l.LocalRank = number
		}
		end += 2
		if end < len(text) && text[end] == ' ' {
			end++ // of PyTorch, which indents nothing by one blank
		}
		return end
	case c == '(':
		// Ray: (TrainWorker pid=2630, ip=10.0.0.7) text
		end := strings.Index(text[:min(len(text), maxPrefix)], ") ")
		if end < 0 || !strings.Contains(text[:end], " pid=") {
			return 0
		}
		return end + 2
	case c >= '0' && c <= '9' || c == ' ':
		// srun --label: 12: text, aligned to the right.
		end := strings.Index(text[:min(len(text), 10)], ": ")
		if end < 0 {
			return 0
		}
		number, err := strconv.ParseInt(strings.TrimLeft(text[:end], " "), 10, 32)
		if err != nil || l.Rank >= 0 {
			return 0
		}
		l.Rank = number
		return end + 2
	}
	return 0
}

// isName reports whether a text is the name of a role: letters, which may be joined by
// hyphens or underscores.
func isName(text string) bool {
	for i := range len(text) {
		if c := text[i] | 0x20; (c < 'a' || c > 'z') && text[i] != '_' && text[i] != '-' {
			return false
		}
	}
	return true
}
