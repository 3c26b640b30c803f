// Package exception reads the exceptions that programs report, and removes what
// frameworks wrapped around them.
package exception

import (
	"regexp"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/snapshot"
)

// Exception is an exception as a program reports it: its class with its module where that
// was sent, the text without the class, and the stack trace.
type Exception clients.PrintedError

// maxWrappers bounds how many wrappers are removed.
const maxWrappers = 4

// Unwrap returns the exception that a program raised, where e is what a
// framework made of it: Ray's RayTaskError(X), or a client's own print of an
// error. It strips terminal colours, and the class from the beginning of the
// message, where Python prints it.
func Unwrap(e Exception) Exception {
	e.Message = stripColours(e.Message)
	if e.Type == "" {
		if inner, ok := clients.ReadPrintedError(e.Message); ok {
			return Exception(inner)
		}
	}
	e = splitMessage(e)
	for range maxWrappers {
		inner, ok := unwrapRay(e)
		if !ok {
			break
		}
		e = splitMessage(inner)
	}
	return e
}

// splitMessage takes a class from the beginning of the message: one that is
// the type, or, where no type is known, what looks like a class.
func splitMessage(e Exception) Exception {
	named, rest, ok := strings.Cut(e.Message, ":")
	if !ok {
		if e.Type == "" && isClass(e.Message) {
			e.Type, e.Message = e.Message, ""
		}
		return e
	}
	if rest != "" && rest[0] != ' ' {
		return e
	}
	if e.Type == "" && isClass(named) {
		e.Type = named
	} else if e.Type == "" || mlattr.ClassName(named) != mlattr.ClassName(e.Type) {
		return e
	}
	e.Message = strings.TrimPrefix(rest, " ")
	return e
}

var (
	dottedForm = regexp.MustCompile(`^[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*$`)
	// classForm has the endings of exceptions' names; anything else before a colon may be a
	// word of a sentence. Ray puts the class of what it wraps behind its own.
	classForm = regexp.MustCompile(`^(?:[A-Za-z_]\w*\.)*(?:[A-Za-z_]\w*)?` +
		`(?:Error|Exception|Interrupt|Exit|Iteration|Warning|Timeout|Fault|Failure)(?:\((.+)\))?$`)
	colour = regexp.MustCompile(`\x1b\[[\x20-\x3f]*(?s:.)?`)
)

// maxName is the length of the longest name of a class.
const maxName = 256

// isClass reports whether s is the name of an exception's class, with or
// without its module and what Ray puts behind it.
func isClass(s string) bool {
	if len(s) > maxName {
		return false
	}
	found := classForm.FindStringSubmatch(s)
	return found != nil && (found[1] == "" || isClass(found[1]))
}

func isDotted(s string) bool { return len(s) <= maxName && dottedForm.MatchString(s) }

// stripColours takes ANSI escape sequences out (ESC [ … letter).
func stripColours(s string) string { return colour.ReplaceAllString(s, "") }

const header = "Traceback (most recent call last)"

// lastLine returns where the last line of a text that fits begins and ends, or -1.
func lastLine(text string, fits func(line string) bool) (from, to int) {
	at := 0
	from, to = -1, -1
	for line := range strings.Lines(text) {
		if fits(strings.TrimRight(line, "\r\n")) {
			from, to = at, at+len(line)
		}
		at += len(line)
	}
	return from, to
}

// unwrapRay removes one RayTaskError(X). Ray raises it where a task's result is
// asked for; its message is the traceback of the process that the task ran
// in. That begins with a line about the process and ends with X's own message.
func unwrapRay(e Exception) (Exception, bool) {
	class, wrapped := mlattr.UnwrapRay(e.Type)
	if !wrapped {
		return e, false
	}
	// The frames of the innermost task begin behind the line about its process.
	_, frames := lastLine(e.Message, func(line string) bool { return strings.Contains(line, "ray::") && strings.Contains(line, "(pid=") })
	raised, _ := lastLine(e.Message[max(frames, 0):], func(line string) bool {
		named, _, _ := strings.Cut(line, ":")
		return isDotted(named) && mlattr.ClassName(named) == mlattr.ClassName(class)
	})
	inner := Exception{Type: class, Message: e.Message, Stack: e.Stack}
	if raised >= 0 {
		named, message, _ := strings.Cut(e.Message[max(frames, 0)+raised:], ":")
		if len(named) > len(class) {
			inner.Type = strings.TrimSpace(named) // with its module
		}
		inner.Message = strings.TrimSpace(message)
	}
	if frames >= 0 && frames < len(e.Message) {
		inner.Stack = header + ":\n" + e.Message[frames:]
	}
	return inner, true
}

// FromTraceback reads a Python traceback that stands somewhere in a text, as
// Python and IPython print it. The exception is the last one of a chain: the
// one that the program ended with.
func FromTraceback(text string) (Exception, bool) {
	if !strings.Contains(text, header) {
		return Exception{}, false
	}
	text = stripColours(text)
	begin := strings.Index(text, header)
	if begin < 0 {
		return Exception{}, false
	}
	// Whole lines: IPython puts the class before the header.
	begin = strings.LastIndexByte(text[:begin], '\n') + 1
	stack := text[begin:]
	raised, _ := lastLine(stack, func(line string) bool {
		named, _, _ := strings.Cut(line, ":")
		return isClass(named) || isDotted(named) && strings.Contains(named, ".")
	})
	if raised < 0 {
		return Exception{}, false
	}
	class, message, _ := strings.Cut(stack[raised:], ":")
	return Exception{
		Type:    strings.TrimSpace(class),
		Message: strings.TrimSpace(message),
		Stack:   strings.TrimRight(stack, "\n"),
	}, true
}

// outputKeys have what a code executor printed.
var outputKeys = vocabulary.Calls().Output

// Printed reads the traceback that a code executor returned as the
// code's output.
func Printed(attributes pcommon.Map) (Exception, bool) {
	for _, k := range outputKeys {
		if e, ok := FromTraceback(snapshot.Text(mlattr.FirstText(attributes, k), snapshot.MaxStack)); ok {
			return e, true
		}
	}
	return Exception{}, false
}
