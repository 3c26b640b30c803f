package clients

import (
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// componentKind returns what a component's class ends in.
func componentKind(class string) string {
	for _, kind := range [...]string{"Generator", "Embedder"} {
		if strings.HasSuffix(class, kind) {
			return kind
		}
	}
	return ""
}

// PrintedError is an error as a client's runtime prints it.
type PrintedError struct {
	// Type is the class and Message the text; either may be empty.
	Type, Message string
	// Stack is the stack trace, or "".
	Stack string
}

// snakepitStructure begins Elixir's print of one of Snakepit's errors.
const snakepitStructure = "%Snakepit.Error."

// pythonType finds the class of a Python exception in Elixir's print of an error; see
// ReadPrintedError. Quotes within its texts are escaped, so a message cannot hold the field.
// Any other error names no class: its text is no label.
func pythonType(text string) string {
	e, ok := ReadPrintedError(text)
	if !ok || !strings.Contains(text, `python_type: "`+e.Type+`"`) || len(e.Type) > mlattr.MaxText || !dotted(e.Type) {
		return ""
	}
	return e.Type
}

// dotted reports whether text is the name of a Python class, with or without
// modules.
func dotted(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c != '.' && (c < '0' || c > '9')) {
			return false
		}
	}
	return text != ""
}

// ReadPrintedError reads Elixir's print of an error that came from Python:
//
//	%Snakepit.Error.PythonException{message: "…", python_type: "ValueError"}
//	%Snakepit.Error.ValueError{message: "…", …}
func ReadPrintedError(text string) (PrintedError, bool) {
	rest, ok := strings.CutPrefix(text, snakepitStructure)
	if !ok {
		return PrintedError{}, false
	}
	name, fields, ok := strings.Cut(rest, "{")
	if !ok || len(name) > 2*mlattr.MaxText || !dotted(name) {
		return PrintedError{}, false
	}
	e := PrintedError{Type: name}
	if name == "PythonException" {
		e.Type = ""
	}
	for len(fields) > 0 {
		quote := strings.IndexByte(fields, '"')
		if quote < 0 {
			break
		}
		before := fields[:quote]
		value, after := elixirText(fields[quote+1:])
		fields = after
		switch {
		case strings.HasSuffix(before, " message: "), before == "message: ":
			e.Message = value
		case strings.HasSuffix(before, " python_type: "), before == "python_type: ":
			e.Type = value
		case strings.HasSuffix(before, "traceback: "), strings.HasSuffix(before, "stacktrace: "):
			e.Stack = value
		}
	}
	if e.Type == "" && e.Message == "" {
		return PrintedError{}, false
	}
	return e, true
}

// escaped are letters that Elixir prints after a backslash, and meant what they stand for.
// Other characters stand for themselves.
const escaped, meant = "ntre", "\n\t\r\x1b"

// elixirText returns a text up to its closing quote, and what comes after.
func elixirText(s string) (text, after string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '"' {
			return b.String(), s[i+1:]
		}
		if c == '\\' && i+1 < len(s) {
			i++
			if c = s[i]; strings.IndexByte(escaped, c) >= 0 {
				c = meant[strings.IndexByte(escaped, c)]
			}
		}
		b.WriteByte(c)
	}
	return b.String(), "" // cut off on its way
}
