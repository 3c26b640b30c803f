package content

import "strings"

// Rules for secrets that follow their name.
const (
	assignmentRule = "assignment"
	argumentRule   = "argument"
)

const (
	// maxName is the longest name that is read, in bytes.
	maxName = 128
	// minValue is the length in bytes of the shortest value.
	minValue = 3
	// maxGap is the longest distance between the members name and value, in
	// bytes.
	maxGap = 64
)

var (
	nameByte = alphabet("A-Za-z0-9_.$-").bytes()
	// identifier has the bytes of a dotted path of identifiers without digits.
	identifier = alphabet("A-Za-z_.").bytes()
	operator   = alphabet("=>:").bytes()
	backslash  = alphabet(`\`).bytes()
	space      = alphabet(" \t").bytes()
)

// scanner finds names of secrets that are followed by a value: name=value and
// name: value in a text, a shell command, a URL, JSON or Python's output,
// --name value, ("name", "value") and <name>value</name>.
type scanner struct {
	writer
	// named is the secret that {"name": "password", "value": …} names. It
	// applies up to until.
	named string
	until int
	// listed is where the last list of values ends. A list within one of its
	// values is not read: it could reach as far, and so could a list in each of
	// many values.
	listed int
	// unquoted has where an unquoted value ends, and variable where that of a
	// variable does. Many names can stand before one end: pass:pass:pass:
	unquoted, variable, line reach
}

// reach is a part of a text in which what begins at any place ends at one: at
// its end.
type reach struct{ from, to int }

// assigned replaces the values that follow names of secrets.
func (s *scanner) assigned() (string, []string) {
	for i := 0; i < len(s.text); i++ {
		switch s.text[i] {
		case '=', ':':
			i = s.assignment(i)
		case '>':
			i = s.element(i)
		case ',':
			i = s.pair(i)
		case '-':
			i = s.argument(i)
		}
	}
	return s.result()
}

// assignment reads the name and the value around the separator at i. It returns
// the last position that was read.
func (s *scanner) assignment(i int) int {
	n := s.nameBefore(i)
	if n.text == "" {
		return i
	}
	next := s.skip(i+1, &operator)
	name := n.text
	if !IsSecretKey(name) {
		if name = s.member(name, next); name == "" {
			return i
		}
	}
	if rule := headerRule(name); rule != "" && n.before != '?' && n.before != '&' {
		return s.header(i, next, n, rule)
	}
	return s.values(i, next, name, n)
}

// member returns the name of the secret whose value follows, for objects with
// members for name and value: {"name": "password", "value": "x"}.
func (s *scanner) member(name string, next int) string {
	switch strings.ToLower(name) {
	case "name", "key":
		near := scanner{writer: writer{text: s.text[:min(len(s.text), next+maxName)]}}
		if v := near.value(next, false); IsSecretKey(s.text[v.from:v.to]) {
			s.named, s.until = s.text[v.from:v.to], v.to+maxGap
		}
	case "value", "stringvalue", "string_value":
		if next <= s.until {
			return s.named
		}
	}
	return ""
}

// values replaces the value at next, or each string of the list there.
func (s *scanner) values(i, next int, name string, n named) int {
	v := s.value(next, n.isVariable())
	if v.from == v.to && v.from < len(s.text) && (s.text[v.from] == '[' || s.text[v.from] == '(') {
		done := i
		if v.from < s.listed {
			return done
		}
		for v = s.value(v.from+1, false); v.quoted; v = s.value(v.next+1, false) {
			s.listed = v.next
			done = s.redact(done, v, name, assignmentRule)
			if v.next >= len(s.text) || s.text[v.next] != ',' {
				break
			}
		}
		return done
	}
	if !v.quoted && (n.isCount() || s.isCode(v, name)) {
		return i
	}
	return s.redact(i, v, name, assignmentRule)
}

// isCode reports whether an unquoted value is an expression of a program, as in
// a stack trace: api_key=settings.api_key, token=token, secret=load("x").
func (s *scanner) isCode(v value, name string) bool {
	end := min(s.skip(v.from, &identifier), v.to)
	text := s.text[v.from:end]
	path := strings.ContainsAny(text, "._")
	if end < v.to {
		return s.text[end] == '(' && (path || end+1 == v.to)
	}
	return text == name || path && IsSecretKey(text) || v.to < len(s.text) && s.text[v.to] == '['
}

// header replaces the value of a header after the name of its scheme, up to the
// end of the line or of the quotes around the value or the header.
func (s *scanner) header(i, next int, n named, rule string) int {
	v := s.value(next, false)
	if !v.quoted {
		if v.from == v.to && v.from < len(s.text) && (s.text[v.from] == '[' || s.text[v.from] == '(') {
			return s.values(i, next, n.text, n)
		}
		v.to = s.lineEnd(v.from, n)
	}
	text := s.text[v.from:v.to]
	if scheme, rest, found := strings.Cut(text, " "); found && rule != "cookie" && isScheme(scheme) && len(rest) >= minValue {
		v.from += len(scheme) + 1
	}
	return s.redact(i, v, n.text, rule)
}

// headerRules are the rules for headers whose value is the rest of the line, by their last
// words.
var headerRules = map[string]string{"authorization": "authorization", "cookie": "cookie", "cookies": "cookie"}

// headerRule returns the rule for a header, or "".
func headerRule(name string) string { return headerRules[lastWord(name)] }

// isScheme reports whether word can be the name of an authentication scheme,
// such as AWS4-HMAC-SHA256.
func isScheme(word string) bool {
	return word != "" && len(word) <= len("AWS4-HMAC-SHA256") && consistsOf(word, &nameByte)
}

// redact replaces v if it can be a secret with that name. It returns the last
// position that was read, i if it replaces nothing.
func (s *scanner) redact(i int, v value, name, rule string) int {
	if v.to-v.from < minValue || !isCredential(name, s.text[v.from:v.to]) {
		return i
	}
	s.replace(v.from, v.to, rule)
	return v.to - 1
}

// element replaces the value of <name>value</name>, whose first tag ends at i.
func (s *scanner) element(i int) int {
	start := s.nameStart(i)
	if start == 0 || start == i || s.text[start-1] != '<' || !IsSecretKey(s.text[start:i]) {
		return i
	}
	length := strings.IndexByte(s.text[i:min(len(s.text), i+maxEncoded)], '<')
	s.read += max(length, 0)
	if length < 0 {
		return i
	}
	return s.redact(i, value{from: i + 1, to: i + length}, s.text[start:i], assignmentRule)
}

// pair replaces the value of ("name", "value"), whose comma is at i.
func (s *scanner) pair(i int) int {
	if i == 0 || !isQuote(s.text[i-1]) {
		return i
	}
	n := s.nameBefore(i)
	if n.text == "" || n.before != '(' && n.before != '[' || !IsSecretKey(n.text) {
		return i
	}
	v := s.value(i+1, false)
	if !v.quoted || v.next < len(s.text) && s.text[v.next] != ')' && s.text[v.next] != ']' {
		return i
	}
	if rule := headerRule(n.text); rule != "" {
		return s.header(i, i+1, n, rule)
	}
	return s.redact(i, v, n.text, assignmentRule)
}

// argument replaces the value of --name value and "--name", "value", whose name
// begins at i.
func (s *scanner) argument(i int) int {
	if i > 0 && (nameByte[s.text[i-1]] || s.text[i-1] == '/') {
		return i
	}
	end := i
	for end < len(s.text) && nameByte[s.text[end]] && end-i < maxName {
		end++
	}
	if end == len(s.text) || end-i < 3 || !IsSecretKey(s.text[i:end]) {
		return i
	}
	next := s.skip(end, &backslash)
	if next < len(s.text) && isQuote(s.text[next]) {
		next = s.skipSpace(next + 1)
		if next == len(s.text) || s.text[next] != ',' {
			return i
		}
		if v := s.value(next+1, false); v.quoted && !strings.HasPrefix(s.text[v.from:v.to], "-") {
			return s.redact(i, v, s.text[i:end], argumentRule)
		}
		return i
	}
	if s.text[end] != ' ' && s.text[end] != '\t' {
		return i
	}
	v := s.value(end, true)
	if v.from < v.to && s.text[v.from] == '-' {
		return i
	}
	return s.redact(i, v, strings.TrimLeft(s.text[i:end], "-"), argumentRule)
}

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
func (n named) isCount() bool { return n.separator == ':' && strings.EqualFold(n.text, "pass") }

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
	before := s.text[max(0, i-16):i]
	return len(before) - len(strings.TrimRight(before, `\`))
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
