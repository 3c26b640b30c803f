package vocabulary

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

var changeKeys = func() map[string]*table.ChangeKey {
	index := make(map[string]*table.ChangeKey)
	for _, t := range Tables() {
		for i := range t.Changes {
			index[t.Changes[i].Source] = &t.Changes[i]
		}
	}
	for _, name := range mlattr.Frameworks() {
		for _, key := range [...]string{name + ".version", name + "_version"} {
			index[key] = &table.ChangeKey{Source: key, Kind: mlattr.ChangeFramework, Name: name}
		}
	}
	return index
}()

// ChangeKeyOf returns what an attribute of a resource, or of a span that is a
// request to a model, shows about changes, or nil.
func ChangeKeyOf(key string) *table.ChangeKey { return changeKeys[key] }
