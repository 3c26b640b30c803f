// Package mlstateconverter adds the ml_state extension to configurations that have
// components which use it, and do not list it. It refuses configurations that pass the
// stock validation and cannot start.
package mlstateconverter

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/confmap"

	"github.com/otelcol-ml/otelcol-ml/extension/mlstateextension/internal/metadata"
)

// users are the types of the components that use the extension.
var users = []string{"ml_enrich", "ml_guard", "ml_metrics", "ml_sample", "ml_view", "repro_gen"}

// NewFactory returns the factory of the converter.
func NewFactory() confmap.ConverterFactory {
	return confmap.NewConverterFactory(func(confmap.ConverterSettings) confmap.Converter { return converter{} })
}

type converter struct{}

// Convert changes nothing in a configuration that does not load anyway.
func (converter) Convert(_ context.Context, conf *confmap.Conf) error {
	if err := check(conf); err != nil {
		return err
	}
	const list = "service::extensions"
	extensions, isList := conf.Get(list).([]any)
	isState := func(id any) bool { return typeOf(fmt.Sprint(id)) == metadata.Type.String() }
	if !isList && conf.Get(list) != nil || slices.ContainsFunc(extensions, isState) || !hasUser(conf) {
		return nil
	}
	id := metadata.Type.String()
	return conf.Merge(confmap.NewFromStringMap(map[string]any{"extensions::" + id: nil, list: append(extensions, id)}))
}

// hasUser reports whether the configuration has a component that uses the extension.
func hasUser(conf *confmap.Conf) bool {
	for _, section := range []string{"processors", "connectors", "exporters", "extensions"} {
		components, _ := conf.Get(section).(map[string]any)
		for id := range components {
			if slices.Contains(users, typeOf(id)) {
				return true
			}
		}
	}
	return false
}

// typeOf returns the part of a component's id before the slash.
func typeOf(id string) string {
	kind, _, _ := strings.Cut(id, "/")
	return strings.TrimSpace(kind)
}
