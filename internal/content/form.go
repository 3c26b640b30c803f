package content

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Form is the condition that the text of an attribute must meet to be kept.
type Form uint8

const (
	// Unlisted keys keep numbers, and ids if the key says that it is one.
	Unlisted Form = iota
	// Removed keys keep nothing.
	Removed
	// Token is one word: an enumeration, an id, a name of a program's part.
	Token
	// Label is a product's name: a few words.
	Label
	// Path is a file path outside of home folders.
	Path
	// Node is a token, or the name of an Erlang node, name@host. The host has
	// no dot, so an e-mail address is no node.
	Node
	// Point is a token on metric points, and unlisted elsewhere.
	Point
	// Anything is any text.
	Anything
)

var formNames = map[string]Form{"removed": Removed, "token": Token, "label": Label, "path": Path, "node": Node, "point": Point}

// Limits of the forms, in bytes unless the name says otherwise.
const (
	maxToken      = 255
	maxLabel      = 100
	maxLabelWords = 8
	maxPath       = 512
	maxAttribute  = 128
	// A telephone number has ten digits, a card number more.
	maxDigits = 9
)

// Fits reports whether a text has the form of a token, a label, a path or a node.
func (f Form) Fits(text string) bool {
	switch f {
	case Token, Point:
		return isToken(text)
	case Label:
		return isLabel(text)
	case Node:
		name, host, ok := strings.Cut(text, "@")
		return isToken(text) || ok && name != "" && isToken(name) && isHost(host)
	case Path:
		return isPath(text)
	case Anything:
		return true
	default:
		return false
	}
}

// Bytes of the forms.
var (
	// tokenByte has those of a token. An e-mail address's @, spaces, quotes and what
	// separates the parameters of a URL are not among them.
	tokenByte  = alphabet("!#-%(-:<->A-[]-_a-~").bytes()
	pathByte   = alphabet(`!#-%(-:<->A-_a-~`).bytes()
	digitByte  = alphabet("0-9").bytes()
	hexByte    = alphabet("0-9A-Fa-f").bytes()
	ulidByte   = alphabet("0-9A-HJKMNP-TV-Z").bytes()
	letterByte = alphabet("A-Za-z").bytes()
	hostByte   = alphabet("A-Za-z0-9_.-").bytes()
	keyByte    = alphabet("A-Za-z0-9_./:$-").bytes()
	unitByte   = alphabet("A-Za-z0-9%/{}_*^.[]-").bytes()
	moduleByte = alphabet("A-Za-z0-9_./:-").bytes()
)

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
	named := !strings.Contains(text, ".") || strings.Trim(text, "0123456789.") == ""
	return text != "" && len(text) <= 64 && named && consistsOf(text, &hostByte)
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
	return len(text) <= maxPath && consistsOf(text, &pathByte) &&
		!slices.ContainsFunc(homes, func(folder string) bool { return strings.Contains(text, folder) })
}

// homes are the folders of users.
var homes = []string{"/home/", "/Users/", `\Users\`, "/root/"}

// numberText is a number with at most six digits before the decimal point.
var numberText = compiled(`^[+-]?[0-9]{1,6}(?:\.[0-9]{1,20})?(?:[eE][+-]*[0-9]{1,3})?$`)

// isNumber reports whether a text is a boolean or a number with at most six
// digits before the decimal point: counts and sizes, but no telephone numbers.
func isNumber(text string) bool {
	switch text {
	case "":
		return false
	case "true", "false", "True", "False", "null", "None":
		return true
	}
	// Most texts are none, which their first byte shows.
	return text[0] <= '9' && numberText().MatchString(text)
}

// longDigits reports whether a text has more consecutive digits than an id that
// a person wrote.
func longDigits(text string) bool {
	row := 0
	for i := range len(text) {
		if !digitByte[text[i]] {
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

func isHex(text string) bool { return consistsOf(text, &hexByte) }

func isUUID(text string) bool {
	return text[8] == '-' && text[13] == '-' && text[18] == '-' && text[23] == '-' &&
		isHex(text[:8]) && isHex(text[9:13]) && isHex(text[14:18]) && isHex(text[19:23]) && isHex(text[24:])
}

func isULID(text string) bool { return text[0] >= '0' && text[0] <= '7' && consistsOf(text, &ulidByte) }

// IsKey reports whether a key looks as if it were written in a program's
// source. Keys can also be made of data.
func IsKey(key string) bool {
	return key != "" && len(key) <= maxAttribute && (letterByte[key[0]] || key[0] == '_') && consistsOf(key, &keyByte) && !longDigits(key)
}

// IsMetric reports whether a metric's name is a key, allowing for the signs
// around units that some clients add.
func IsMetric(name string) bool {
	if IsKey(name) {
		return true
	}
	plain := strings.NewReplacer("(", "", ")", "", "%", "").Replace(name)
	return len(name) <= 2*maxAttribute && IsKey(plain)
}

// IsUnit reports whether a text is a UCUM unit or one of the words that clients
// use instead.
func IsUnit(text string) bool {
	return len(text) <= 32 && consistsOf(text, &unitByte) && !longDigits(text)
}

// IsVersion reports whether a text is one word that begins like a version.
func IsVersion(text string) bool {
	number := strings.TrimPrefix(text, "v")
	return number != "" && len(number) <= 64 && digitByte[number[0]] && isToken(number) && !longDigits(number) || versionWords[text]
}

// versionWords stand for a version.
var versionWords = Words("dev latest unknown (devel)")

// IsSchema reports whether a URL identifies a version of the semantic
// conventions.
func IsSchema(url string) bool {
	version, ok := strings.CutPrefix(url, "https://opentelemetry.io/schemas/")
	return ok && len(version) <= 16 && version != "" && strings.Trim(version, "0123456789.") == ""
}

// IsSeverity reports whether a text is a log level, in any spelling.
func IsSeverity(text string) bool {
	switch text {
	case "INFO", "WARN", "ERROR", "DEBUG", "WARNING":
		return true
	}
	if len(text) > 0 && text[len(text)-1] >= '1' && text[len(text)-1] <= '4' {
		text = text[:len(text)-1]
	}
	return severities[strings.ToLower(text)]
}

// severities are the log levels, in lower case.
var severities = Words("trace debug info information notice warn warning error err severe critical crit alert fatal emergency emerg panic unspecified")

// IsModule reports whether a scope's name is a module name with at least two
// parts.
func IsModule(name string) bool {
	name = strings.TrimPrefix(name, "@")
	return name != "" && len(name) <= maxToken && !longDigits(name) && strings.ContainsAny(name, "./:") && consistsOf(name, &moduleByte)
}

// IsQualified reports whether a name is that of a nested function or class,
// such as Regressor.forward, ns::function or package.Service/Method.
func IsQualified(name string) bool {
	// Most names are none, which has no need of the expression.
	return len(name) <= maxAttribute && strings.ContainsAny(name, ".:/") && !strings.Contains(name, " ") &&
		qualified().MatchString(name) && !longDigits(name)
}

// qualified is two identifiers or more, which a method may follow, or a class and a method.
var qualified = func() func() *regexp.Regexp {
	const part, method = `(?:[A-Za-z_][\w-]*|<locals>|<lambda>)`, `/[A-Z][\w-]*`
	return compiled(`^(?:` + part + `(?:(?:\.|::)` + part + `)+(?:` + method + `)?|[A-Z][\w-]*` + method + `)$`)
}()
