package exception

import (
	"regexp"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
)

const maxFrames = 8

// frameLine is the line of a frame: `File "x.py", line 3, in f`.
var frameLine = regexp.MustCompile(`^File "(.*?)", line .*?, in (.*)$`)

// RootCause reads a Python stack trace. In a chain ("During handling of the
// above exception …") the first exception is the cause. Frames of the
// standard library and of installed packages are left out.
func RootCause(stack string) failure.Cause {
	var c failure.Cause
	var all []failure.Frame
	for line := range strings.Lines(stack) {
		line = strings.TrimRight(line, "\r\n")
		text := strings.TrimLeft(line, " |+-")
		if found := frameLine.FindStringSubmatch(text); found != nil {
			file, function := found[1], strings.TrimSpace(found[2])
			if isApplication(file) && !isComprehension(function) {
				all = append(all, failure.Frame{Module: moduleOf(file), Function: function})
			}
			continue
		}
		// The first line that is not indented ends the first exception.
		if line != "" && line[0] != ' ' && line[0] != '\t' && !strings.HasPrefix(text, header) {
			c.Type = typeOf(line)
			break
		}
	}
	for _, frame := range slices.Backward(all) {
		if len(c.Frames) < maxFrames && !slices.Contains(c.Frames, frame) {
			c.Frames = append(c.Frames, frame)
		}
	}
	return c
}

func isApplication(file string) bool {
	f := strings.ReplaceAll(file, `\`, "/")
	return !strings.HasPrefix(f, "<") &&
		!strings.Contains(f, "/site-packages/") && !strings.Contains(f, "/dist-packages/") &&
		!strings.Contains(f, "/lib/python3") && !strings.Contains(f, "/Lib/")
}

// isComprehension reports whether a frame is one that Python has since 3.12 no
// more: the same program must have the same frames on either.
func isComprehension(function string) bool {
	return function == "<listcomp>" || function == "<setcomp>" || function == "<dictcomp>"
}

func moduleOf(file string) string {
	names := strings.Split(strings.TrimSuffix(strings.ReplaceAll(file, `\`, "/"), ".py"), "/")
	return strings.Join(names[max(0, len(names)-2):], "/")
}

// typeOf reads `package.Class: message`; what has white space before the
// colon is a sentence and no class.
func typeOf(line string) string {
	name, _, _ := strings.Cut(line, ":")
	if strings.ContainsAny(name, " \t") {
		return ""
	}
	return name
}
