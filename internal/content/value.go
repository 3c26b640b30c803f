package content

import "strings"

// named is a name before a separator.
type named struct {
	text string
	// before is the byte before the name and its quote, 0 at the start of the
	// text.
	before byte
	// enclosing is the quote around name and value together, if any, and
	// escapes the number of backslashes before it.
	enclosing byte
	escapes   int
	separator byte
}

// isVariable reports whether the name is an environment variable, whose value
// ends only at a space or a quote.
func (n named) isVariable() bool {
	return n.separator == '=' && n.before != '?' && n.before != '&' && strings.ToUpper(n.text) == n.text
}

// isCount reports whether "pass" is a pass over data or a passed test, and no
// password: "forward pass: 12 ms".
func (n named) isCount() bool {
	return n.separator == ':' && strings.EqualFold(n.text, "pass")
}

// nameBefore reads the name that ends before the separator at i, with or
// without quotes or brackets.
func (s *scanner) nameBefore(i int) named {
	end := s.operatorStart(i)
	// A type may follow the name: var token string = "x".
	if start := s.nameStart(end); typeNames[s.text[start:end]] {
		end = s.operatorStart(start)
	}
	quoted := end > 0 && isQuote(s.text[end-1])
	if quoted {
		end--
		end -= s.escapesBefore(end)
	}
	start := s.nameStart(end)
	// In "API key: x" the previous word is a part of the name.
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
var typeNames = Words("string String str bytes text")

// operatorStart returns the start of the operator that ends before end,
// including spaces and brackets before it: "] ?=".
func (s *scanner) operatorStart(end int) int {
	start := end
	for start > 0 && end-start < 8 && strings.IndexByte(" !]?:.+|", s.text[start-1]) >= 0 {
		start--
	}
	return start
}

// nameStart returns the start of the name that ends before end.
func (s *scanner) nameStart(end int) int {
	start := end
	for start > 0 && end-start < maxName && nameByte[s.text[start-1]] {
		start--
	}
	// In JSON, an escaped line break before a name ends in n, and an escaped
	// ampersand in u0026.
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

// escapesBefore returns the number of backslashes before i, at most 16.
func (s *scanner) escapesBefore(i int) int {
	n := 0
	for i-n > 0 && n < 16 && s.text[i-n-1] == '\\' {
		n++
	}
	return n
}

// quotedQuote is a quote within quotes in a shell command.
const quotedQuote = `'"'"'`

// value is text[from:to]. next is the position after it and its quotes.
type value struct {
	from, to, next int
	quoted         bool
}

// value reads the value at i. The value of a variable ends at a space or a
// quote; other values also end at punctuation of programs, URLs and sentences.
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
		to := s.closing(quote+1, len(s.text), s.text[quote], escapes)
		return value{quote + 1, to, s.skipSpace(min(len(s.text), to+escapes+1)), true}
	}
	to := s.unquotedEnd(from, variable)
	return value{from, to, to, false}
}

// unquotedEnd returns the end of the unquoted value that begins at from.
func (s *scanner) unquotedEnd(from int, variable bool) int {
	known, ends := &s.unquoted, ",;&[}])"
	if variable {
		known, ends = &s.variable, ""
	}
	return s.reaches(known, from, func(i int) bool { return s.endsValue(i) || strings.IndexByte(ends, s.text[i]) >= 0 })
}

// reaches returns the first place from on that ends, or the end of the text. It
// looks at no place twice as long as it is asked in order.
func (s *scanner) reaches(known *reach, from int, ends func(i int) bool) int {
	if from < known.from || from > known.to {
		to := from
		for to < len(s.text) && !ends(to) {
			to++
		}
		s.read += to - from
		*known = reach{from, to}
	}
	return known.to
}

// endsValue reports whether an unquoted value ends before i.
func (s *scanner) endsValue(i int) bool {
	c := s.text[i]
	if c == '\\' && i+1 < len(s.text) {
		return strings.IndexByte(`nrtu"'`, s.text[i+1]) >= 0
	}
	return c <= ' ' || isQuote(c) || c == '<'
}

// lineEnd returns the end of the line at i, or of the quotes around n.
func (s *scanner) lineEnd(i int, n named) int {
	end := s.reaches(&s.line, i, func(i int) bool {
		return s.text[i] == '\r' || s.text[i] == '\n' || s.text[i] == '\\' && i+1 < len(s.text) && (s.text[i+1] == 'r' || s.text[i+1] == 'n')
	})
	if n.enclosing != 0 {
		end = s.closing(i, end, n.enclosing, n.escapes)
	}
	return end
}

// closing returns the end of the quoted string that continues at i: before a
// quote with as many backslashes as the opening one, or at limit. In SQL two
// quotes are one character of the string.
func (s *scanner) closing(i, limit int, quote byte, escapes int) int {
	start := i
	for ; i < limit; i++ {
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
		s.read += i - start
		return i - min(n, escapes)
	}
	s.read += limit - start
	return limit
}

func (s *scanner) skipSpace(i int) int { return s.skip(i, &space) }

// skip returns the first place from i on whose byte is not in the set.
func (s *scanner) skip(i int, set *[256]bool) int {
	start := i
	for i < len(s.text) && set[s.text[i]] {
		i++
	}
	s.read += i - start
	return i
}

func isQuote(c byte) bool { return c == '"' || c == '\'' }
