package fingerprint

import "strings"

const maxTemplate = 512

// Template replaces what differs between two messages of one defect:
// numbers, sizes, hex strings, UUIDs, IP addresses, URLs and dates. Lists of
// numbers become one. At most the first 512 bytes are looked at.
func Template(message string) string {
	if len(message) > maxTemplate {
		message = message[:maxTemplate]
	}
	var b strings.Builder
	for i := 0; i < len(message); {
		if !isWordByte(message[i]) {
			b.WriteByte(message[i])
			i++
			continue
		}
		end := i
		for end < len(message) && isWordByte(message[end]) {
			end++
		}
		word := message[i:end]
		if scheme, ok := strings.CutSuffix(word, ":"); ok && scheme != "" && strings.HasPrefix(message[end:], "//") {
			for end < len(message) && !strings.ContainsRune(" \t\r\n\"'<>)", rune(message[end])) {
				end++
			}
			b.WriteString("<url>")
			i = end
			continue
		}
		trimmed := strings.TrimRight(word, ".:-+")
		b.WriteString(wordTemplate(trimmed))
		b.WriteString(word[len(trimmed):])
		i = end
	}
	return collapse(b.String())
}

func isWordByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' ||
		c == '_' || c == '.' || c == ':' || c == '-' || c == '+'
}

func wordTemplate(w string) string {
	if !strings.ContainsAny(w, "0123456789") {
		return w
	}
	switch {
	case isUUID(w):
		return "<uuid>"
	case isIP(w), isIPv6(w):
		return "<ip>"
	case isDate(w):
		return "<date>"
	case isNumber(w):
		return "<num>"
	case isNumber(strings.TrimRight(w, "KMGTiB")) && strings.HasSuffix(w, "B"):
		return "<size>"
	case strings.HasPrefix(w, "0x") && isHex(w[2:]), len(w) >= 8 && isHex(w):
		return "<hex>"
	}
	return digitRuns(w)
}

func isHex(w string) bool {
	return w != "" && strings.Trim(w, "0123456789abcdefABCDEF") == ""
}

func isUUID(w string) bool {
	if len(w) != 36 || w[8] != '-' || w[13] != '-' || w[18] != '-' || w[23] != '-' {
		return false
	}
	return isHex(strings.ReplaceAll(w, "-", ""))
}

func isIP(w string) bool {
	host, _, _ := strings.Cut(w, ":")
	return strings.Count(host, ".") == 3 && strings.Trim(host, "0123456789.") == ""
}

func isIPv6(w string) bool {
	return strings.Count(w, ":") >= 2 && (strings.Contains(w, "::") || strings.Count(w, ":") == 7) &&
		isHex(strings.ReplaceAll(w, ":", ""))
}

func isDate(w string) bool {
	return len(w) >= 10 && w[4] == '-' && w[7] == '-' && strings.Trim(w, "0123456789-:.TZ+") == ""
}

func isNumber(w string) bool {
	return w != "" && strings.Trim(w, "0123456789.eE+-") == "" && strings.ContainsAny(w[:1], "0123456789+-.")
}

// digitRuns keeps the words around numbers: layer12.weight, cuda:0.
func digitRuns(w string) string {
	var b strings.Builder
	inRun := false
	for i := range len(w) {
		digit := w[i] >= '0' && w[i] <= '9'
		if !digit {
			b.WriteByte(w[i])
		} else if !inRun {
			b.WriteString("<n>")
		}
		inRun = digit
	}
	return b.String()
}

var sizes = strings.NewReplacer(
	"<num> GiB", "<size>", "<num> MiB", "<size>", "<num> KiB", "<size>",
	"<num> TiB", "<size>", "<num> GB", "<size>", "<num> MB", "<size>", "<num> KB", "<size>", "<num> TB", "<size>",
	"<num> bytes", "<size>")

// collapse makes one of a list of numbers, so that shapes of other rank are
// the same message.
func collapse(s string) string {
	for _, separator := range []string{", ", " ", ","} {
		pair := "<num>" + separator + "<num>"
		for strings.Contains(s, pair) {
			s = strings.ReplaceAll(s, pair, "<num>")
		}
	}
	return sizes.Replace(s)
}
