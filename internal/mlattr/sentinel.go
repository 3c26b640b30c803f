package mlattr

import "strings"

// Sentinel reports whether an identifier is empty or one of those that launchers
// write where they have none: 0, -1, none, null, local, unknown or a dash, in
// any case.
func Sentinel(id string) bool {
	switch len(id) {
	case 0:
		return true
	case 1:
		return id == "0" || id == "-"
	case 2:
		return id == "-1"
	case 4:
		return strings.EqualFold(id, "none") || strings.EqualFold(id, "null")
	case 5:
		return strings.EqualFold(id, "local")
	case 7:
		return strings.EqualFold(id, "unknown")
	default:
		return false
	}
}
