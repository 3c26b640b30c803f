package artifact

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
)

// readParts reads the parts of scripts in a folder, each made short.
func readParts(folder fs.FS, into map[string][]byte) error {
	names, _ := fs.Glob(folder, "script/*.py.tmpl") // the pattern is one
	for _, path := range names {
		text, err := fs.ReadFile(folder, path)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(strings.TrimPrefix(path, "script/"), ".py.tmpl")
		if _, known := into[name]; known {
			return fmt.Errorf("two parts of scripts are named %q", name)
		}
		into[name] = shortened(string(text))
	}
	return nil
}

// partsOf returns the names of a script's parts in their order. The first has the
// hole, which is inside the only string literal with three single quotes.
func partsOf(k *kind.Kind, spec jsontree.Object) (names []string) {
	add := func(needed bool, parts ...string) {
		if needed {
			names = append(names, parts...)
		}
	}
	env := spec.Object("env")
	variables := slices.ContainsFunc(env, func(m jsontree.Member) bool { return strings.HasPrefix(m.Key, "repro.env.") })
	add(true, "start", "output")
	add(len(spec.Array("redacted")) > 0, "set")
	add(variables, "apply")
	if k.Parts != nil {
		add(true, k.Parts(spec)...)
		add(true, "judging")
		add(spec.Object("expect").Text("message_template") != "", "fits")
		add(true, "guard", "landlock", "child", "parent")
		add(!variables, "noapply")
		add(true, "plain")
	}
	add(len(env) > 0, "environment")
	add(true, "main")
	return names
}
