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
