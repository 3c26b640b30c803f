package label

import "go.opentelemetry.io/collector/pdata/pcommon"

// Taken reports whether an attribute would get the same Prometheus label as
// key. The exporter drops a point that has both, so the client's own attribute
// stands alone: error_type keeps error.type away.
func Taken(attrs pcommon.Map, key string) bool {
	for have := range attrs.All() {
		if same(have, key) {
			return true
		}
	}
	return false
}

// same reports whether two attribute keys become one label. Prometheus keeps
// ASCII letters and digits, and makes one underscore of any run of others.
func same(a, b string) bool {
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		inA, inB := labelByte(a[i]), labelByte(b[j])
		if inA != inB || inA && a[i] != b[j] {
			return false
		}
		i, j = i+1, j+1
		if inA {
			continue
		}
		for i < len(a) && !labelByte(a[i]) {
			i++
		}
		for j < len(b) && !labelByte(b[j]) {
			j++
		}
	}
	return i == len(a) && j == len(b)
}

func labelByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}
