package detect_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Causes are kinds of the table, and no kind follows from itself.
func TestCausesAreNoCircle(t *testing.T) {
	var follow func(kind string, path map[string]bool)
	follow = func(kind string, path map[string]bool) {
		of, known := mlattr.ProblemNamed(kind)
		assert.True(t, known, kind)
		if !assert.False(t, path[kind], kind) {
			return
		}
		path[kind] = true
		for _, cause := range of.Follows {
			follow(cause, path)
		}
		delete(path, kind)
	}
	for _, kind := range mlattr.Problems {
		follow(kind.Name, map[string]bool{})
	}
}
