package secret

import "strings"

// named is a name that stands before a separator.
type named struct {
	text string
	// before is the byte before the name and its quote, 0 at the text's start.
	before byte
	// enclosing is the quote that the name and its value stand in together, if
	// any, and escapes the number of backslashes before it.
	enclosing byte
	escapes   int
	separator byte
}

// isVariable reports whether the name is an environment variable's, whose value
// ends with a space at the earliest.
func (n named) isVariable() bool {
	return n.separator == '=' && n.before != '?' && n.before != '&' && strings.ToUpper(n.text) == n.text
}

// isCount reports whether the name is that of a run through data or of a test
// that went well, and not of a password: "forward pass: 12 ms".
func (n named) isCount() bool {
	return n.separator == ':' && strings.EqualFold(n.text, "pass")
}

// nameBefore reads the name that ends before the separator at i: in quotes, in
// brackets, or as it stands.
func (s *scanner) nameBefore(i int) named {
	end := s.operatorStart(i)
	// The type of a variable stands between: var token string = "x".
	if start := s.nameStart(end); typeNames[s.text[start:end]] {
		end = s.operatorStart(start)
	}
	quoted := end > 0 && isQuote(s.text[end-1])
	if quoted {
		end--
		end -= s.escapesBefore(end)
	}
	start := s.nameStart(end)
	// "API key: x": the word before says which.
	if end-start == 3 && start > 1 && strings.EqualFold(s.text[start:end], "key") && s.text[start-1] == ' ' {
		start = s.nameStart(start - 1)
	}
	n := named{text: strings.Trim(s.text[start:end], "-.$"), separator: s.text[i]}
	if start == 0 || n.text == "" {
		return n
	}
	if isQuote(s.text[start-1]) {
		if !quoted {
			n.enclosing, n.escapes = s.text[start-1], s.escapesBefore(start-1)
		}
		start--
		start -= s.escapesBefore(start)
		// b"name" and u"name".
		if start > 0 && (s.text[start-1] == 'b' || s.text[start-1] == 'u') {
			start--
		}
	}
	if start > 0 {
		n.before = s.text[start-1]
	}
	return n
}

// typeNames are types of texts in declarations.
var typeNames = set("string String str bytes text")

// operatorStart returns where the operator that ends before end starts, with the
// spaces and the bracket before it: "]  ?=".
func (s *scanner) operatorStart(end int) int {
	start := end
	for start > 0 && end-start < 8 && strings.IndexByte(" !]?:.+|", s.text[start-1]) >= 0 {
		start--
	}
	return start
}

// nameStart returns where the name that ends before end starts.
func (s *scanner) nameStart(end int) int {
	start := end
	for start > 0 && end-start < maxName && nameByte[s.text[start-1]] {
		start--
	}
	// In JSON, an escaped line break stands before a name as n, and an escaped
	// ampersand as u0026.
	if start > 0 && start < end && s.text[start-1] == '\\' {
		switch s.text[start] {
		case 'n', 'r', 't':
			start++
		case 'u':
			start = min(end, start+5)
		}
	}
	return start
}

// escapesBefore counts the backslashes before i, up to 16.
func (s *scanner) escapesBefore(i int) int {
	n := 0
	for i-n > 0 && n < 16 && s.text[i-n-1] == '\\' {
		n++
	}
	return n
}

// quotedQuote is a quote within quotes, as a shell needs it.
const quotedQuote = `'"'"'`

// value is text[from:to], and what follows it and its quotes is at next.
type value struct {
	from, to, next int
	quoted         bool
}

// value reads the value at i. That of a variable ends at a space or a quote,
// another's at what ends a value in a program, a URL or a sentence too.
func (s *scanner) value(i int, variable bool) value {
	from := s.skipSpace(i)
	quote := from
	if quote+1 < len(s.text) && strings.IndexByte("burf", s.text[quote]) >= 0 && isQuote(s.text[quote+1]) {
		quote++
	}
	escapes := 0
	for quote < len(s.text) && escapes < 16 && s.text[quote] == '\\' {
		quote++
		escapes++
	}
	if strings.HasPrefix(s.text[quote:], quotedQuote) {
		quote += len(quotedQuote) - 1
	}
	if quote < len(s.text) && isQuote(s.text[quote]) {
		to := s.closing(quote+1, s.text[quote], escapes)
		return value{quote + 1, to, s.skipSpace(min(len(s.text), to+escapes+1)), true}
	}
	ends := ",;&[}])"
	if variable {
		ends = ""
	}
	to := from
	for to < len(s.text) && !s.endsValue(to) && strings.IndexByte(ends, s.text[to]) < 0 {
		to++
	}
	return value{from, to, to, false}
}

// endsValue reports whether an unquoted value ends before i.
func (s *scanner) endsValue(i int) bool {
	c := s.text[i]
	if c == '\\' && i+1 < len(s.text) {
		return strings.IndexByte(`nrtu"'`, s.text[i+1]) >= 0
	}
	return c <= ' ' || isQuote(c) || c == '<'
}

// lineEnd returns where the line at i ends, or the quotes around n.
func (s *scanner) lineEnd(i int, n named) int {
	end := len(s.text)
	if at := strings.IndexAny(s.text[i:], "\r\n"); at >= 0 {
		end = i + at
	}
	if n.enclosing != 0 {
		end = min(end, s.closing(i, n.enclosing, n.escapes))
	}
	for _, escaped := range []string{`\r`, `\n`} {
		if at := strings.Index(s.text[i:end], escaped); at >= 0 {
			end = i + at
		}
	}
	return end
}

// closing returns where the string in quotes that goes on at i ends: before a
// quote with as many backslashes as the first had, or at the end of the text. In
// SQL two quotes are one character of the string.
func (s *scanner) closing(i int, quote byte, escapes int) int {
	for start := i; i < len(s.text); i++ {
		if s.text[i] != quote {
			continue
		}
		n := min(s.escapesBefore(i), i-start)
		if n > escapes || escapes == 0 && n%2 == 1 {
			continue
		}
		if quote == '\'' && i > start && i+1 < len(s.text) && s.text[i+1] == quote {
			i++
			continue
		}
		return i - min(n, escapes)
	}
	return len(s.text)
}

func (s *scanner) skipSpace(i int) int {
	for i < len(s.text) && (s.text[i] == ' ' || s.text[i] == '\t') {
		i++
	}
	return i
}

func isQuote(c byte) bool { return c == '"' || c == '\'' }
