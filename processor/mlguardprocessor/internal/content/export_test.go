package content

import (
	"hash/maphash"
	"maps"
	"slices"
	"strings"
)

// ListedNames returns the names of all lists.
func ListedNames() []string {
	listed := slices.Collect(maps.Keys(linesOf(listedWords)))
	for line := range strings.Lines(listedKeys) {
		key, _, _ := strings.Cut(line, " ")
		listed = append(listed, key)
	}
	return listed
}

// HasNoSecret reports whether a name stays.
func HasNoSecret(name string) bool {
	clean := cleanNames{seed: maphash.MakeSeed()}
	return clean.has(name)
}
