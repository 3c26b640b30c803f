// Package mlfileprovider reads files of configuration as the stock provider does. What
// is wrong in one of them alone, and what the stock messages do not say or the stock
// collector takes for something else, is an error with the file, the line, the key, the
// value, and the environment variable that has it.
package mlfileprovider

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.yaml.in/yaml/v3"
)

// NewFactory returns the factory of the provider, whose scheme is "file".
func NewFactory() confmap.ProviderFactory {
	return confmap.NewProviderFactory(func(settings confmap.ProviderSettings) confmap.Provider {
		return provider{fileprovider.NewFactory().Create(settings)}
	})
}

type provider struct{ confmap.Provider }

// Retrieve checks what is YAML by its name. Other files have texts, such as secrets.
func (p provider) Retrieve(ctx context.Context, uri string, watch confmap.WatcherFunc) (*confmap.Retrieved, error) {
	retrieved, err := p.Provider.Retrieve(ctx, uri, watch)
	f := file{name: strings.TrimPrefix(uri, p.Scheme()+":")}
	if kind := filepath.Ext(f.name); err != nil || kind != ".yaml" && kind != ".yml" {
		return retrieved, err
	}
	text, _ := retrieved.AsString() // that of the file
	var document yaml.Node
	var content any // two keys of one name are an error only here
	if err := errors.Join(yaml.Unmarshal([]byte(text), &document), yaml.Unmarshal([]byte(text), &content)); err != nil {
		return nil, f.invalid(text, err)
	}
	for _, root := range document.Content {
		f.walk("", 0, root)
	}
	return retrieved, errors.Join(f.errs...)
}

// sections have a map for each component.
var sections = []string{"receivers", "processors", "exporters", "connectors", "extensions"}

type file struct {
	name string
	errs []error
}

// invalid says where a text is no YAML.
func (f *file) invalid(text string, err error) error {
	message, _, _ := strings.Cut(strings.TrimPrefix(err.Error(), "yaml: "), "\nyaml: ")
	lines, number := strings.Split(text, "\n"), 0
	_, _ = fmt.Sscanf(message, "line %d: found character that cannot start any token", &number) // or it stays 0
	if number > 0 && number <= len(lines) && strings.HasPrefix(strings.TrimLeft(lines[number-1], " "), "\t") {
		return fmt.Errorf("%s:%d: %q begins with a tab; it must be indented with spaces", f.name, number, strings.TrimSpace(lines[number-1]))
	}
	return fmt.Errorf("%s is not valid YAML: %s", f.name, message)
}

// walk checks a value, which has so many keys above it.
func (f *file) walk(key string, depth int, node *yaml.Node) {
	switch node.Kind {
	case yaml.SequenceNode:
		for i, item := range node.Content {
			f.walk(fmt.Sprintf("%s[%d]", key, i), depth+1, item)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(node.Content); i += 2 {
			name, value := node.Content[i].Value, node.Content[i+1]
			if name == "config" {
				continue // of Prometheus, which has times of its own
			}
			f.walk(strings.TrimPrefix(key+"::"+name, "::"), depth+1, value)
		}
	case yaml.ScalarNode:
		f.scalar(key, depth, node)
	}
}

func (f *file) scalar(key string, depth int, node *yaml.Node) {
	value, source, fallback := node.Value, "", ""
	inner, found := strings.CutPrefix(value, "${env:")
	if inner, closed := strings.CutSuffix(inner, "}"); found && closed && !strings.Contains(inner, "}") {
		name, usual, _ := strings.Cut(inner, ":-")
		value, fallback = usual, usual
		if set := os.Getenv(name); set != "" {
			value, source = set, ", the value of "+name
		}
	}
	fail := func(must string) {
		f.errs = append(f.errs, fmt.Errorf("%s:%d: %s is %q%s; it must be %s", f.name, node.Line, key, value, source, must))
	}
	section, _, _ := strings.Cut(key, "::")
	switch want, got := tag(fallback), tag(value); {
	case value == "" || strings.HasPrefix(value, "$"):
	case depth == 2 && slices.Contains(sections, section) && got != "!!null" && !strings.Contains(key, "["):
		fail("a map of keys and values, with a space after each colon")
	case isTime(key) && section != "service": // there, times are in milliseconds
		if _, err := time.ParseDuration(value); err != nil && value[0] >= '0' && value[0] <= '9' {
			fail("a time with a unit, such as 500ms, 15s or 5m")
		}
	case strings.HasSuffix(key, "_mib") && node.Style == 0 && got != "!!null":
		// A fraction would be cut to a whole number, 0.5 to no limit, and a larger one wraps.
		if _, err := strconv.ParseUint(value, 0, 32); err != nil {
			fail(fmt.Sprintf("a whole number of MiB, from 0 to %d", math.MaxUint32))
		}
	case node.Style != 0 || source == "": // quotes mean a text
	case want == "!!bool" && got != want:
		fail("true or false")
	case (want == "!!int" || want == "!!float") && got != "!!int" && got != "!!float":
		fail("a number, as " + fallback + " is")
	}
}

// tag returns the type that a value has in YAML.
func tag(value string) string { return (&yaml.Node{Kind: yaml.ScalarNode, Value: value}).ShortTag() }

// times are the last words of the keys that are times in the components of the
// distribution.
var times = []string{"timeout", "interval", "wait", "delay", "idle", "expiration", "backoff", "grace", "period", "after", "ttl"}

func isTime(key string) bool {
	name := key[strings.LastIndex(key, ":")+1:]
	return slices.Contains(times, name[strings.LastIndex(name, "_")+1:]) || strings.HasSuffix(name, "_time")
}
