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

// Index returns rows by their keys, of two with one key the last.
func Index[T any, K comparable](rows []T, key func(*T) K) map[K]*T {
	index := make(map[K]*T, len(rows))
	for i := range rows {
		index[key(&rows[i])] = &rows[i]
	}
	return index
}
