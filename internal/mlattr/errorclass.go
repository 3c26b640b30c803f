package mlattr

import (
	"slices"
	"strings"
)

// ErrorClass returns the class of the error that a program raised, where class
// is what a span states: wrappers of a framework are removed, and Python's print
// of a class is read, so that a failure has one class wherever its function ran. Anything else is returned as it is,
// with its module.
func ErrorClass(class string) string {
	// The print of a class of Python.
	if inner, printed := strings.CutPrefix(class, "<class '"); printed {
		class = strings.TrimSuffix(inner, "'>")
	}
	for range maxWrappers {
		inner, wrapped := UnwrapRay(class)
		if !wrapped {
			break
		}
		class = inner
	}
	return class
}

// maxWrappers bounds how often a wrapper is removed.
const maxWrappers = 4

// UnwrapRay returns the class X of RayTaskError(X), which Ray raises where the
// result of a task that raised X is asked for, with or without the module of
// RayTaskError. wrapped reports whether class was such a one.
func UnwrapRay(class string) (inner string, wrapped bool) {
	const wrapper = "RayTaskError"
	outer, rest, ok := strings.Cut(class, "(")
	if !ok || ClassName(outer) != wrapper {
		return class, false
	}
	inner, closed := strings.CutSuffix(rest, ")")
	if !closed || inner == "" {
		return class, false
	}
	return inner, true
}

// ClassName returns a class without its module. Clients differ in whether they
// state it.
func ClassName(class string) string { return class[strings.LastIndexByte(class, '.')+1:] }

// EndedByAnother reports whether the error of a rank says that something else has ended
// before it: its launcher or scheduler stopped it, or the other end of its connection is
// gone. Such an error is not the cause of a failed run that has another one.
func EndedByAnother(class, message string) bool {
	switch ClassName(class) {
	case "SIGTERM", "SignalException", "RendezvousConnectionError", "RendezvousClosedError", "DistNetworkError", "DistStoreError":
		return true
	}
	return containsAny(message, "onnection closed by peer", "onnection reset by peer", "remote process exited", "ncclRemoteError", "Broken pipe")
}

func containsAny(text string, parts ...string) bool {
	return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(text, part) })
}

// HTTPStatusKeys name the status of a response, in the semantic conventions and before 1.20.
var HTTPStatusKeys = [...]string{"http.response.status_code", "http.status_code"}

// StatusIn returns the first status of HTTP in a text that is one of failure, such as
// "500", or "". It begins the text, ends in or follows a colon, or follows a word such as
// status or error.
func StatusIn(text string) string {
	text = text[:min(len(text), MaxText)]
	for i := 0; i+3 <= len(text); i++ {
		if !isDigit(text[i]) {
			continue
		}
		first := i
		for i < len(text) && isDigit(text[i]) {
			i++
		}
		if i-first != 3 || text[first] != '4' && text[first] != '5' || first > 0 && isWord(text[first-1]) || i < len(text) && isWord(text[i]) {
			continue
		}
		if i+1 < len(text) && text[i] == '.' && isDigit(text[i+1]) || first > 1 && (text[first-1] == '.' || text[first-1] == ',') && isDigit(text[first-2]) {
			continue // A part of a longer number.
		}
		if before := strings.ToLower(text[max(first-statusWithin, 0):first]); first == 0 || strings.HasSuffix(before, ": ") ||
			i < len(text) && text[i] == ':' || containsAny(before, "status", "code", "http", "error", "returned") {
			return text[first:i]
		}
	}
	return ""
}

// statusWithin is how far before a status the word is that says so, in bytes.
const statusWithin = 20

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isWord reports whether a byte beside a number makes it another one or a name.
func isWord(c byte) bool {
	return c == '_' || c == '-' || c == '$' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
