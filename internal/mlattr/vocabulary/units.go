package vocabulary

import "strings"

// nameUnits are the units that the last word of a name can state. Ambiguous
// words, such as min, are not in it.
var nameUnits = map[string]string{
	"seconds": "s", "secs": "s", "sec": "s", "s": "s",
	"milliseconds": "ms", "millis": "ms", "ms": "ms",
	"microseconds": "us", "micros": "us", "us": "us",
	"nanoseconds": "ns", "nanos": "ns", "ns": "ns",
	"percent": "%",
}

// unitOfName returns the unit at the end of a name such as acme.wait_ms or
// acme.waitMs, or "".
func unitOfName(name string) string {
	if rest, camel := strings.CutSuffix(name, "Ms"); camel && rest != "" && rest[len(rest)-1] >= 'a' && rest[len(rest)-1] <= 'z' {
		return "ms"
	}
	key, ok := metricKey(nil, name)
	if !ok {
		return ""
	}
	text := string(key)
	at := strings.LastIndexByte(text, '_')
	if at < 0 {
		return ""
	}
	return nameUnits[text[at+1:]]
}
