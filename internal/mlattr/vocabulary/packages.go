package vocabulary

import (
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Packages returns the clients' top-level Python packages. The caller must not
// change it.
func Packages() []string { return packages }

var packages = collectKeys(func(t *table.Table) []string { return t.Packages })

// IsRunner reports whether a program or Python module of this name belongs to a
// client and runs whatever its arguments name.
func IsRunner(program string) bool { return runners[program] }

var runners = func() map[string]bool {
	all := make(map[string]bool)
	for _, t := range Tables() {
		for _, name := range t.Runners {
			all[name] = true
		}
	}
	return all
}()

// Unbounded returns the keys of points of a metric that must not become labels, nil for
// most metrics. The caller must not change it.
func Unbounded(metric string) []string {
	for i := range unbounded {
		for _, prefix := range unbounded[i].MetricPrefixes {
			if strings.HasPrefix(metric, prefix) {
				return unbounded[i].Unbounded
			}
		}
	}
	return nil
}

// unbounded are the tables of clients with such keys.
var unbounded = slices.DeleteFunc(Tables(), func(t Vocabulary) bool { return t.Unbounded == nil })
