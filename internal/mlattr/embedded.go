package mlattr

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// Embedded returns what a YAML file of this program's has. A file that is wrong, or has a key
// that T lacks, is an error of the program.
func Embedded[T any](text []byte) (content T) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&content); err != nil {
		panic(err)
	}
	return content
}

// Index returns rows of a table by their names.
func Index[T any](rows []T, name func(*T) string) map[string]*T {
	index := make(map[string]*T, len(rows))
	for i := range rows {
		index[name(&rows[i])] = &rows[i]
	}
	return index
}
