package content

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// form is the condition that the text of a key must meet to be kept.
type form uint8

const (
	// unlisted keys keep numbers, and ids if the key says that it is one.
	unlisted form = iota
	// removed keys keep nothing.
	removed
	// token is one word: an enumeration, an id, a name of a program's part.
	token
	// label is a product's name: a few words.
	label
	// path is a file path outside of home folders.
	path
	// node is a token, or the name of an Erlang node, name@host. The host has
	// no dot, so an e-mail address is no node.
	node
	// point is a token on metric points, and unlisted elsewhere.
	point
	// anything is any text.
	anything
)

var formNames = map[string]form{"removed": removed, "token": token, "label": label, "path": path, "node": node, "point": point}

// Limits of the forms, in bytes unless the name says otherwise.
const (
	maxToken      = 255
	maxLabel      = 100
	maxLabelWords = 8
	maxPath       = 512
	maxKey        = 128
	// A telephone number has ten digits, a card number more.
	maxDigits = 9
)

// fits reports whether a text has the form of a token, a label or a path.
func (f form) fits(text string) bool {
	switch f {
	case token, point:
		return isToken(text)
	case label:
		return isLabel(text)
	case node:
		name, host, ok := strings.Cut(text, "@")
		return isToken(text) || ok && name != "" && isToken(name) && isHost(host)
	case path:
		return isPath(text)
	case anything:
		return true
	default:
		return false
	}
}

// tokenByte has the bytes that a token may have. An e-mail address's @, spaces,
// quotes and what separates the parameters of a URL are not among them.
var tokenByte = func() (allowed [256]bool) {
	for c := '!'; c <= '~'; c++ {
		allowed[c] = !strings.ContainsRune("@\"'`;\\?&", c)
	}
	return allowed
}()

// isToken also accepts a token in quotes, because some clients send JSON.
func isToken(text string) bool {
	if len(text) >= 2 && text[0] == '"' && text[len(text)-1] == '"' {
		text = text[1 : len(text)-1]
	}
	if len(text) > maxToken {
		return false
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case tokenByte[c]:
		case c == '@' && strings.HasPrefix(text[i:], "@sha256:"):
		case c == '?' && (i == len(text)-1 || text[i+1] == '}'): // a route's optional part
		case c == 0xC2 && strings.HasPrefix(text[i:], "µ"):
			i++
		default:
			return false
		}
	}
	return true
}

// isHost reports whether a text is a host name without a domain, or a numeric
// address.
func isHost(text string) bool {
	if text == "" || len(text) > 64 {
		return false
	}
	numbers := strings.Trim(text, "0123456789.") == ""
	for i := range len(text) {
		if c := text[i]; !isAlpha(c) && !isDigit(c) && c != '-' && c != '_' && (c != '.' || !numbers) {
			return false
		}
	}
	return true
}

func isLabel(text string) bool {
	if len(text) > maxLabel || longDigits(text) {
		return false
	}
	words := 1
	for i, r := range text {
		switch {
		case r == ' ':
			if words++; words > maxLabelWords {
				return false
			}
		case r == '@':
			// The clock in what a processor calls itself.
			if !strings.HasPrefix(text[i:], "@ ") || i == 0 || text[i-1] != ' ' {
				return false
			}
		case r < utf8.RuneSelf:
			if !tokenByte[r] {
				return false
			}
		case r == utf8.RuneError || !unicode.IsLetter(r):
			return false
		}
	}
	return true
}

func isPath(text string) bool {
	if len(text) > maxPath {
		return false
	}
	for i := range len(text) {
		if !tokenByte[text[i]] && text[i] != '\\' {
			return false
		}
	}
	for _, folder := range [...]string{"/home/", "/Users/", `\Users\`, "/root/"} {
		if strings.Contains(text, folder) {
			return false
		}
	}
	return true
}

// isNumber reports whether a text is a boolean or a number with at most six
// digits before the decimal point: counts and sizes, but no telephone numbers.
func isNumber(text string) bool {
	switch text {
	case "true", "false", "True", "False", "null", "None":
		return true
	}
	if text != "" && (text[0] == '+' || text[0] == '-') {
		text = text[1:]
	}
	whole, rest := digits(text)
	if whole < 1 || whole > 6 {
		return false
	}
	if strings.HasPrefix(rest, ".") {
		var fraction int
		if fraction, rest = digits(rest[1:]); fraction < 1 || fraction > 20 {
			return false
		}
	}
	if rest == "" {
		return true
	}
	if rest[0] != 'e' && rest[0] != 'E' {
		return false
	}
	exponent, rest := digits(strings.TrimLeft(rest[1:], "+-"))
	return exponent >= 1 && exponent <= 3 && rest == ""
}

// digits returns the number of leading digits of a text and the text after
// them.
func digits(text string) (count int, rest string) {
	for count < len(text) && isDigit(text[count]) {
		count++
	}
	return count, text[count:]
}

// isOwner reports whether a text is a numeric user id of the machine.
func isOwner(text string) bool {
	count, rest := digits(text)
	return count > 0 && count <= 10 && rest == ""
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// longDigits reports whether a text has more consecutive digits than an id that
// a person wrote.
func longDigits(text string) bool {
	row := 0
	for i := range len(text) {
		if !isDigit(text[i]) {
			row = 0
		} else if row++; row > maxDigits {
			return true
		}
	}
	return false
}

// isID reports whether a text has the form of a generated id: a UUID, a ULID,
// or the hexadecimal digits of 8, 12, 16, 20, 32 or 64 bytes with at least one
// letter, since a card number has 16 digits.
func isID(text string) bool {
	switch len(text) {
	case 36:
		return isUUID(text)
	case 26:
		return isULID(text)
	case 16, 24, 32, 40, 64:
		return isHex(text) && strings.ContainsAny(text, "abcdefABCDEF")
	default:
		return false
	}
}

func isHex(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isDigit(c) && (c|0x20 < 'a' || c|0x20 > 'f') {
			return false
		}
	}
	return true
}

func isUUID(text string) bool {
	return text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' &&
		isHex(text[:8]) && isHex(text[9:13]) && isHex(text[14:18]) && isHex(text[19:23]) && isHex(text[24:])
}

func isULID(text string) bool {
	if text[0] < '0' || text[0] > '7' {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !isDigit(c) && (c < 'A' || c > 'Z' || c == 'I' || c == 'L' || c == 'O' || c == 'U') {
			return false
		}
	}
	return true
}

// isKey reports whether a key looks as if it were written in a program's
// source. Keys can also be made of data.
func isKey(key string) bool {
	if key == "" || len(key) > maxKey || !isAlpha(key[0]) && key[0] != '_' {
		return false
	}
	for i := range len(key) {
		if c := key[i]; !isAlpha(c) && !isDigit(c) && !strings.ContainsRune("_.-/:$", rune(c)) {
			return false
		}
	}
	return !longDigits(key)
}

// isMetric reports whether a metric's name is a key, allowing for the signs
// around units that some clients add.
func isMetric(name string) bool {
	if isKey(name) {
		return true
	}
	plain := strings.NewReplacer("(", "", ")", "", "%", "").Replace(name)
	return len(name) <= 2*maxKey && isKey(plain)
}

// isUnit reports whether a text is a UCUM unit or one of the words that clients
// use instead.
func isUnit(text string) bool {
	if len(text) > 32 {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !isAlpha(c) && !isDigit(c) && !strings.ContainsRune("%/{}_*^.-[]", rune(c)) {
			return false
		}
	}
	return !longDigits(text)
}

// isVersion reports whether a text is one word that begins like a version.
func isVersion(text string) bool {
	switch text {
	case "dev", "latest", "unknown", "(devel)":
		return true
	}
	text = strings.TrimPrefix(text, "v")
	return text != "" && len(text) <= 64 && isDigit(text[0]) && isToken(text) && !longDigits(text)
}

// isSchema reports whether a URL identifies a version of the semantic
// conventions.
func isSchema(url string) bool {
	version, ok := strings.CutPrefix(url, "https://opentelemetry.io/schemas/")
	return ok && len(version) <= 16 && version != "" && strings.Trim(version, "0123456789.") == ""
}

// isSeverity reports whether a text is a log level, in any spelling.
func isSeverity(text string) bool {
	switch text {
	case "INFO", "WARN", "ERROR", "DEBUG", "WARNING":
		return true
	}
	if len(text) > 0 && text[len(text)-1] >= '1' && text[len(text)-1] <= '4' {
		text = text[:len(text)-1]
	}
	for _, level := range [...]string{"trace", "debug", "info", "information", "notice", "warn", "warning", "error",
		"err", "severe", "critical", "crit", "alert", "fatal", "emergency", "emerg", "panic", "unspecified"} {
		if strings.EqualFold(text, level) {
			return true
		}
	}
	return false
}

// isModule reports whether a scope's name is a module name with at least two
// parts.
func isModule(name string) bool {
	name = strings.TrimPrefix(name, "@")
	if name == "" || len(name) > maxToken || longDigits(name) || !strings.ContainsAny(name, "./:") {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isAlpha(c) && !isDigit(c) && !strings.ContainsRune("_-./:", rune(c)) {
			return false
		}
	}
	return true
}

// isQualified reports whether a name is that of a nested function or class,
// such as Regressor.forward, ns::function or package.Service/Method.
func isQualified(name string) bool {
	if len(name) > maxKey || longDigits(name) {
		return false
	}
	owner, method, isCall := strings.Cut(name, "/")
	if isCall && (!isIdentifier(method) || method[0] < 'A' || method[0] > 'Z' || owner == "" || owner[len(owner)-1] == '.') {
		return false
	}
	parts := 0
	for rest := owner; ; {
		end := strings.IndexAny(rest, ".:")
		part := rest
		if end >= 0 {
			part = rest[:end]
		}
		if !isIdentifier(part) && part != "<locals>" && part != "<lambda>" {
			return false
		}
		if parts++; end < 0 {
			return parts > 1 || isCall && owner[0] >= 'A' && owner[0] <= 'Z'
		}
		separator := 1
		if strings.HasPrefix(rest[end:], "::") {
			separator = 2
		} else if rest[end] == ':' {
			return false
		}
		rest = rest[end+separator:]
	}
}

func isIdentifier(text string) bool {
	if text == "" || !isAlpha(text[0]) && text[0] != '_' {
		return false
	}
	for i := range len(text) {
		if c := text[i]; !isAlpha(c) && !isDigit(c) && c != '_' && c != '-' {
			return false
		}
	}
	return true
}
