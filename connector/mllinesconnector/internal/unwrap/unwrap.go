// Package unwrap finds the lines of a program within what container runtimes, launchers and
// terminals make of them.
package unwrap

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Record is what a log record has of one or several lines.
type Record struct {
	// Text is what the program wrote, without what the container runtime added.
	Text string
	// Stream is stdout or stderr, "" if unknown.
	Stream string
	// Time is when the runtime received the text, zero if unknown.
	Time time.Time
	// Partial is true where the runtime cut a line, and the rest follows.
	Partial bool
}

// Wrapped reads a line of a container runtime's file: of the CRI or of Docker. Any other
// text is returned as it is.
func Wrapped(text string) Record {
	if strings.HasPrefix(text, `{"log":`) {
		if r, ok := docker(text); ok {
			return r
		}
	}
	// 2026-01-02T15:04:05.999999999Z stdout F text
	at, rest, ok := strings.Cut(text, " ")
	if !ok || len(at) < 20 || at[4] != '-' || at[10] != 'T' || !strings.HasPrefix(rest, "std") {
		return Record{Text: text}
	}
	stream, rest, _ := strings.Cut(rest, " ")
	tags, rest, ok := strings.Cut(rest, " ")
	if !ok && tags == "" || stream != "stdout" && stream != "stderr" {
		return Record{Text: text}
	}
	tag, _, _ := strings.Cut(tags, ":")
	when, err := time.Parse(time.RFC3339Nano, at)
	if err != nil || tag != "F" && tag != "P" {
		return Record{Text: text}
	}
	return Record{Text: rest, Stream: stream, Time: when, Partial: tag == "P"}
}

func docker(text string) (Record, bool) {
	var line struct {
		Log    *string `json:"log"`
		Stream string  `json:"stream"`
		Time   string  `json:"time"`
	}
	if json.Unmarshal([]byte(text), &line) != nil || line.Log == nil {
		return Record{}, false
	}
	// Docker cuts lines at 16 KiB: only the last part has the line feed.
	whole, ended := strings.CutSuffix(*line.Log, "\n")
	when, _ := time.Parse(time.RFC3339Nano, line.Time)
	return Record{Text: whole, Stream: line.Stream, Time: when, Partial: !ended && line.Time != ""}, true
}

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
