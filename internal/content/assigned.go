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

// withoutAssigned replaces the values that follow names of secrets.
func withoutAssigned(text string, rules []string) (string, []string) {
	s := scanner{writer: writer{text: text, rules: rules}}
	s.assigned()
	return s.result()
}

func (s *scanner) assigned() {
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

// headerRule returns the rule for a header whose value is the rest of the line,
// or "".
func headerRule(name string) string {
	switch lastWord(name) {
	case "authorization":
		return "authorization"
	case "cookie", "cookies":
		return "cookie"
	}
	return ""
}

// isScheme reports whether word can be the name of an authentication scheme,
// such as AWS4-HMAC-SHA256.
func isScheme(word string) bool {
	for i := range len(word) {
		if !nameByte[word[i]] {
			return false
		}
	}
	return word != "" && len(word) <= len("AWS4-HMAC-SHA256")
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
