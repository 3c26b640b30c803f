// Package unwrap finds the lines of a program within what launchers and terminals make of
// them. What container runtimes make of them is read by the operator container of file_log.
package unwrap

import (
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
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

// within is the part of a line that its time is in.
const within = 80

// stated is a date, of which the year may be missing, and a time of day.
var stated = regexp.MustCompile(`(?:(\d{4})[-/](\d\d)[-/](\d\d)[T ]|\b(\d\d)/(\d\d) |\b[IWEF](\d\d)(\d\d) )(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?`)

// Stated returns the time that a line states near its beginning, in a local time zone:
// 2025-04-13 23:41:12,123, 07/01 12:00:00, or glog's I0706 16:50:26.230209. A time without
// a year is the one that is nearest to another time. exact is the difference of two such
// times: a second, or less with a fraction. ok is false without one.
func Stated(line string, near time.Time) (at time.Time, exact time.Duration, ok bool) {
	m := stated.FindStringSubmatch(line[:min(len(line), within)])
	if m == nil {
		return at, 0, false
	}
	number := func(texts ...string) (n int) {
		for _, text := range texts {
			if text != "" {
				n, _ = strconv.Atoi(text) // digits, by the expression
			}
		}
		return n
	}
	year, month, day := number(m[1]), number(m[2], m[4], m[6]), number(m[3], m[5], m[7])
	hour, minute, second := number(m[8]), number(m[9]), number(m[10])
	if m[1] == "" {
		if year = near.Year(); near.Month() == time.January && month == 12 {
			year-- // of the year before
		}
	}
	if year < 2000 || year > 2200 || month < 1 || month > 12 || day < 1 || day > 31 || hour > 23 || minute > 59 || second > 60 {
		return at, 0, false
	}
	unit := int(math.Pow10(9 - len(m[11])))
	return time.Date(year, time.Month(month), day, hour, minute, second, number(m[11])*unit, time.Local), time.Duration(unit), true
}
