package recording

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/receiver/gpureceiver/internal/device"
)

// maxText is the largest length of any text, in bytes.
const maxText = 4096

// maxEntries is the largest number of entries of each list, by its key.
var maxEntries = map[string]int{
	"gpus":             maxGPUs,
	"frames":           maxFrames,
	"processes":        maxProcesses,
	"environ":          64,
	"types":            len(device.ProcessTypes),
	"fan_speed_ratios": 16,
	"owners":           64,
	"xids":             maxXIDs,
}

var (
	durationType = reflect.TypeFor[time.Duration]()
	numberType   = reflect.TypeFor[device.Number]()
	flagType     = reflect.TypeFor[device.Flag]()
	numbersType  = reflect.TypeFor[device.Numbers]()
)

// checkSchema compares a document with the type that it is decoded into, so that
// an error names the key and the allowed values. The decoder would name a type
// of this program, take null for 0 and a bare number for nanoseconds.
func checkSchema(node *yaml.Node, kind reflect.Type, path string) error {
	if kind.Kind() == reflect.Pointer {
		kind = kind.Elem()
	}
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		// Aliases let a small file become large in memory.
		return wrong(node, path, "an anchor or an alias", "none of them")
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		return wrong(node, path, "null", "a value; leave out what was unavailable")
	}
	switch kind {
	case durationType:
		var duration time.Duration
		if node.Kind != yaml.ScalarNode || node.Tag != "!!str" || node.Decode(&duration) != nil {
			return wrong(node, path, describe(node), "a duration such as 10s")
		}
		return nil
	case numberType:
		return checkScalar(node, kind, path, "a number from -1e30 to 1e30")
	case flagType:
		return checkScalar(node, kind, path, "true or false")
	case numbersType:
		return checkNumbers(node, path)
	}
	switch kind.Kind() {
	case reflect.Struct:
		return checkFields(node, kind, path)
	case reflect.Slice:
		return checkEntries(node, kind, path)
	case reflect.Map:
		return checkPairs(node, path, func(value *yaml.Node, path string) error {
			return checkSchema(value, kind.Elem(), path)
		})
	case reflect.String:
		if node.Kind != yaml.ScalarNode {
			return wrong(node, path, describe(node), "a text")
		}
		if len(node.Value) > maxText {
			return wrong(node, path, fmt.Sprintf("%d bytes long", len(node.Value)), fmt.Sprintf("at most %d", maxText))
		}
		return nil
	case reflect.Bool:
		return checkScalar(node, kind, path, "true or false")
	default:
		return checkScalar(node, kind, path, "a whole number that fits "+kind.String())
	}
}

func checkScalar(node *yaml.Node, kind reflect.Type, path, allowed string) error {
	if node.Kind != yaml.ScalarNode || node.Decode(reflect.New(kind).Interface()) != nil {
		return wrong(node, path, describe(node), allowed)
	}
	return nil
}

func checkNumbers(node *yaml.Node, path string) error {
	return checkPairs(node, path, func(value *yaml.Node, path string) error {
		return checkSchema(value, numberType, path)
	})
}

// checkFields checks a mapping whose keys are the fields of a struct.
func checkFields(node *yaml.Node, kind reflect.Type, path string) error {
	fields := fieldsOf(kind)
	return checkPairs(node, path, func(value *yaml.Node, path string) error {
		name := path[strings.LastIndex(path, ":")+1:]
		for _, field := range fields {
			if field.name == name {
				return checkSchema(value, field.kind, path)
			}
		}
		return fmt.Errorf("line %d: %q is no key of a recording; allowed there are %q", value.Line, path, names(fields))
	})
}

// checkPairs checks a mapping with a function for each of its values.
func checkPairs(node *yaml.Node, path string, check func(value *yaml.Node, path string) error) error {
	if node.Kind != yaml.MappingNode {
		return wrong(node, path, describe(node), "keys with values")
	}
	seen := make(map[string]bool, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		if key.Kind != yaml.ScalarNode || key.Anchor != "" {
			return wrong(key, path, "a key that is no text", "a text")
		}
		name := shorten(key.Value)
		if seen[name] {
			return wrong(key, join(path, name), "there twice", "one")
		}
		seen[name] = true
		if err := check(value, join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

func checkEntries(node *yaml.Node, kind reflect.Type, path string) error {
	if node.Kind != yaml.SequenceNode {
		return wrong(node, path, describe(node), "a list")
	}
	name := path[strings.LastIndex(path, ":")+1:]
	if allowed := maxEntries[name]; len(node.Content) > allowed {
		return fmt.Errorf("line %d: %q has %d entries; allowed are at most %d", node.Line, path, len(node.Content), allowed)
	}
	for i, entry := range node.Content {
		if kind == reflect.TypeFor[device.Fans]() && entry.Tag == "!!null" && entry.Anchor == "" {
			continue
		}
		if err := checkSchema(entry, kind.Elem(), fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

// field is a key of a mapping.
type field struct {
	name string
	kind reflect.Type
}

// fieldsOf returns the keys of a struct, including those of inlined structs.
func fieldsOf(kind reflect.Type) []field {
	var fields []field
	for f := range kind.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if options == "inline" {
			fields = append(fields, fieldsOf(f.Type)...)
			continue
		}
		fields = append(fields, field{name, f.Type})
	}
	return fields
}

func names(fields []field) []string {
	all := make([]string, 0, len(fields))
	for _, f := range fields {
		all = append(all, f.name)
	}
	slices.Sort(all)
	return all
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "::" + name
}

// wrong returns an error about a node of the document.
func wrong(node *yaml.Node, path, found, allowed string) error {
	if path == "" {
		return fmt.Errorf("line %d: the recording is %s; allowed is %s", node.Line, found, allowed)
	}
	return fmt.Errorf("line %d: %q is %s; allowed is %s", node.Line, path, found, allowed)
}

// describe describes a node for an error.
func describe(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	default:
		return fmt.Sprintf("%q", shorten(node.Value))
	}
}

// shorten limits the text of a hostile file in logs.
func shorten(text string) string {
	const limit = 64
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

// errEmpty means that a file has no document.
var errEmpty = errors.New("the recording is empty")
