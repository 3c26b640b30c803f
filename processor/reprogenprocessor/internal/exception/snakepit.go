package exception

import "strings"

const snakepitError = "%Snakepit.Error."

// snakepit reads Elixir's print of an error that came from Python:
//
//	%Snakepit.Error.PythonException{message: "…", python_type: "ValueError"}
//	%Snakepit.Error.ValueError{message: "…", …}
func snakepit(text string) (Exception, bool) {
	rest, ok := strings.CutPrefix(text, snakepitError)
	if !ok {
		return Exception{}, false
	}
	name, fields, ok := strings.Cut(rest, "{")
	if !ok || !isDotted(name) {
		return Exception{}, false
	}
	e := Exception{Type: name}
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
		return Exception{}, false
	}
	return e, true
}

// elixirText reads a text up to its closing quote.
func elixirText(s string) (text, after string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
				b.WriteByte('\r')
			case 'e':
				b.WriteByte(0x1B)
			default:
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), "" // cut off on its way
}
