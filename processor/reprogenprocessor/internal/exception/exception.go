// Package exception reads the exceptions that programs report, and removes what
// frameworks wrapped around them.
package exception

import (
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// Exception is an exception as a program reports it.
type Exception struct {
	// Type is the class as it was named, with its module where that was sent,
	// or "".
	Type string
	// Message is the text without the class, or "".
	Message string
	// Stack is the stack trace, or "".
	Stack string
}

// maxWrappers bounds how many wrappers are removed.
const maxWrappers = 4

// Unwrap returns the exception that a program raised, where e is what a
// framework made of it: Ray's RayTaskError(X), or a client's own print of an
// error. It strips terminal colours, and the class from the beginning of the
// message, where Python prints it.
func Unwrap(e Exception) Exception {
	e.Message = stripColours(e.Message)
	if e.Type == "" {
		if inner, ok := vocabulary.ReadPrintedError(e.Message); ok {
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
	class, rest, ok := strings.Cut(e.Message, ":")
	if !ok {
		if e.Type == "" && isClass(e.Message) {
			e.Type, e.Message = e.Message, ""
		}
		return e
	}
	if rest != "" && rest[0] != ' ' {
		return e
	}
	if e.Type == "" && isClass(class) {
		e.Type = class
	} else if e.Type == "" || mlattr.ClassName(class) != mlattr.ClassName(e.Type) {
		return e
	}
	e.Message = strings.TrimPrefix(rest, " ")
	return e
}

// endings are those of exceptions' names; anything else before a colon may be
// a word of a sentence.
var endings = [...]string{"Error", "Exception", "Interrupt", "Exit", "Iteration", "Warning", "Timeout", "Fault", "Failure"}

// isClass reports whether s is the name of an exception's class, with or
// without its module and what Ray puts behind it.
func isClass(s string) bool {
	s, inner, wraps := strings.Cut(s, "(")
	if wraps && (!strings.HasSuffix(inner, ")") || !isClass(strings.TrimSuffix(inner, ")"))) {
		return false
	}
	if !isDotted(s) {
		return false
	}
	for _, ending := range endings {
		if strings.HasSuffix(s, ending) {
			return true
		}
	}
	return false
}

func isDotted(s string) bool {
	if s == "" || len(s) > 256 {
		return false
	}
	for part := range strings.SplitSeq(s, ".") {
		if part == "" || part[0] >= '0' && part[0] <= '9' {
			return false
		}
		for _, c := range []byte(part) {
			if c != '_' && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
				return false
			}
		}
	}
	return true
}

// stripColours takes ANSI escape sequences out (ESC [ … letter).
func stripColours(s string) string {
	if strings.IndexByte(s, 0x1B) < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != 0x1B || i+1 == len(s) || s[i+1] != '[' {
			b.WriteByte(s[i])
			continue
		}
		end := i + 2
		for end < len(s) && s[end] >= 0x20 && s[end] < 0x40 {
			end++
		}
		i = end
	}
	return b.String()
}
