package recording

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
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

// unique is the key that differs between the entries of each list, and its field.
var unique = map[string][2]string{"gpus": {"uuid", "ID"}, "processes": {"pid", "PID"}}

// decode reads a node into a value. Its errors name the key and the allowed values. The
// decoder of YAML would name a type of this program, take null for 0 and a bare number
// for nanoseconds.
func decode(node *yaml.Node, into reflect.Value, path string) error {
	if err := refuse(node, path); err != nil {
		return err
	}
	switch value := into.Addr().Interface().(type) {
	case *time.Duration:
		if node.Tag != "!!str" {
			return wrong(node, path, describe(node), "a duration such as 10s")
		}
		return decodeScalar(node, value, path, "a duration such as 10s")
	case *device.Number:
		value.Known = true
		return decode(node, reflect.ValueOf(&value.Value).Elem(), path)
	case *workload.Number:
		value.Known = true
		return decode(node, reflect.ValueOf(&value.Value).Elem(), path)
	}
	switch kind := into.Type(); kind.Kind() {
	case reflect.Pointer:
		into.Set(reflect.New(kind.Elem()))
		return decode(node, into.Elem(), path)
	case reflect.Struct:
		return decodePairs(node, path, func(name string, value *yaml.Node, path string) error {
			return decodeField(value, into, name, path)
		})
	case reflect.Slice:
		return decodeSlice(node, into, path)
	case reflect.Map:
		into.Set(reflect.MakeMap(kind))
		return decodePairs(node, path, func(name string, node *yaml.Node, path string) error {
			value := reflect.New(kind.Elem()).Elem()
			err := decode(node, value, path)
			into.SetMapIndex(reflect.ValueOf(name).Convert(kind.Key()), value)
			return err
		})
	case reflect.String:
		err := decodeScalar(node, into.Addr().Interface(), path, "a text")
		if err != nil || len(node.Value) <= maxText {
			return err
		}
		return wrong(node, path, fmt.Sprintf("%d bytes long", len(node.Value)), fmt.Sprintf("at most %d", maxText))
	case reflect.Bool:
		return decodeScalar(node, into.Addr().Interface(), path, "true or false")
	case reflect.Float64:
		const allowed = "a number from -1e30 to 1e30"
		err := decodeScalar(node, into.Addr().Interface(), path, allowed)
		if err != nil || device.IsReading(into.Float()) {
			return err
		}
		return wrong(node, path, describe(node), allowed)
	default:
		return decodeScalar(node, into.Addr().Interface(), path, "a whole number that fits "+kind.String())
	}
}

// refuse returns an error for what is nowhere allowed.
func refuse(node *yaml.Node, path string) error {
	switch {
	case node.Kind == yaml.AliasNode || node.Anchor != "":
		// Aliases let a small file become large in memory.
		return wrong(node, path, "an anchor or an alias", "none of them")
	case node.Kind == yaml.ScalarNode && node.Tag == "!!null":
		return wrong(node, path, "null", "a value; leave out what was unavailable")
	}
	return nil
}

func decodeScalar(node *yaml.Node, into any, path, allowed string) error {
	if node.Kind != yaml.ScalarNode || node.Decode(into) != nil {
		return wrong(node, path, describe(node), allowed)
	}
	return nil
}

// decodeField reads the field of a struct that has this name, or a part of readings.
func decodeField(node *yaml.Node, into reflect.Value, name, path string) error {
	fields := fieldsOf(into)
	if field, found := fields[name]; found {
		return decode(node, field, path)
	}
	allowed := slices.Collect(maps.Keys(fields))
	if r, ok := reflect.TypeAssert[*Readings](into.Addr()); ok {
		if of, found := device.AtKey(name); found && name != "" && !strings.Contains(name, ".") {
			return decodeReadings(node, &r.Readings, of, name, path)
		}
		allowed = append(allowed, device.KeysBelow("")...)
	}
	return unknown(node, path, allowed)
}

// decodeReadings reads the quantities at a key of readings, or what is below it.
func decodeReadings(node *yaml.Node, r *device.Readings, of []*device.Quantity, key, path string) error {
	if err := refuse(node, path); err != nil {
		return err
	}
	switch {
	case len(of) == 1:
		return decodeReading(node, r, of[0], path)
	case len(of) > 1:
		return decodeEntries(node, path, func(i int, entry *yaml.Node, path string) error {
			if entry.Tag == "!!null" && entry.Anchor == "" {
				return nil
			}
			return decodeReading(entry, r, of[i], path)
		})
	}
	return decodePairs(node, path, func(name string, node *yaml.Node, path string) error {
		below := key + "." + name
		of, found := device.AtKey(below)
		if !found || strings.Contains(name, ".") {
			return unknown(node, path, device.KeysBelow(key))
		}
		return decodeReadings(node, r, of, below, path)
	})
}

// decodeReading reads one reading.
func decodeReading(node *yaml.Node, r *device.Readings, of *device.Quantity, path string) error {
	if !of.Flag {
		var number float64
		err := decode(node, reflect.ValueOf(&number).Elem(), path)
		of.Store(r, number)
		return err
	}
	var flag bool
	err := decode(node, reflect.ValueOf(&flag).Elem(), path)
	of.Store(r, map[bool]float64{true: 1}[flag])
	return err
}

// decodePairs calls read with each pair of a mapping.
func decodePairs(node *yaml.Node, path string, read func(name string, value *yaml.Node, path string) error) error {
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
		if err := read(name, value, join(path, name)); err != nil {
			return err
		}
	}
	return nil
}

// decodeEntries calls read with each entry of a list.
func decodeEntries(node *yaml.Node, path string, read func(i int, entry *yaml.Node, path string) error) error {
	if node.Kind != yaml.SequenceNode {
		return wrong(node, path, describe(node), "a list")
	}
	if allowed := maxEntries[lastKey(path)]; len(node.Content) > allowed {
		return fmt.Errorf("line %d: %q has %d entries; allowed are at most %d", node.Line, path, len(node.Content), allowed)
	}
	for i, entry := range node.Content {
		if err := read(i, entry, fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	return nil
}

// decodeSlice reads a list, whose entries differ.
func decodeSlice(node *yaml.Node, into reflect.Value, path string) error {
	into.Set(reflect.MakeSlice(into.Type(), 0, 0))
	key, differ := unique[lastKey(path)]
	seen := make(map[any]bool)
	return decodeEntries(node, path, func(_ int, entry *yaml.Node, path string) error {
		value := reflect.New(into.Type().Elem()).Elem()
		if err := decode(entry, value, path); err != nil {
			return err
		}
		into.Set(reflect.Append(into, value))
		if !differ {
			return nil
		}
		id := value.FieldByName(key[1]).Interface()
		if seen[id] {
			if text, ok := id.(string); ok {
				id = strconv.Quote(text)
			}
			return fmt.Errorf("line %d: %q is %v, which is there twice", entry.Line, join(path, key[0]), id)
		}
		seen[id] = true
		return nil
	})
}

// fieldsOf returns the fields of a struct by their keys, including those of inlined
// structs.
func fieldsOf(of reflect.Value) map[string]reflect.Value {
	fields := make(map[string]reflect.Value)
	for i := range of.NumField() {
		name, options, _ := strings.Cut(of.Type().Field(i).Tag.Get("yaml"), ",")
		switch {
		case options == "inline" && of.Field(i).Kind() == reflect.Struct:
			maps.Copy(fields, fieldsOf(of.Field(i)))
		case options != "inline" && name != "-":
			fields[name] = of.Field(i)
		}
	}
	return fields
}

func lastKey(path string) string {
	return path[strings.LastIndex(path, ":")+1:]
}

// unknown returns an error about a key.
func unknown(node *yaml.Node, path string, allowed []string) error {
	slices.Sort(allowed)
	return fmt.Errorf("line %d: %q is no key of a recording; allowed there are %q", node.Line, path, allowed)
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
