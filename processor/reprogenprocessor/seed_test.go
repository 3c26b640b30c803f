package reprogenprocessor

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestRecordedSeed: what fails by chance fails again by the same chance.
func TestRecordedSeed(t *testing.T) {
	t.Parallel()
	app := t.TempDir()
	write(t, filepath.Join(app, "chance.py"), "import random\ndef draw():\n    raise ValueError('drew %r' % random.random())\n")
	env := []string{"PYTHONPATH=" + app}
	py := pythons(t)[0]
	draw := func(seed any, args ...string) result {
		cfg := testConfig(t, "chance")
		c := failedCall{payload: call("chance", "draw", "[]", "{}"), errorType: "ValueError", attrs: map[string]any{}}
		if seed != nil {
			c.attrs["repro.seed"] = seed
		}
		produce(t, cfg, c.traces())
		r := py.run(t, onlyArtifact(t, cfg), env, args...)
		assert.Equal(t, 1, r.Exit, "%s\n%s", r.Stdout, r.Stderr)
		return r
	}
	recorded := draw(42)
	assert.Equal(t, "drew 0.6394267984578837", recorded.Message, "random.seed(42)")
	assert.Contains(t, recorded.Stderr, "seed: 42, as it was recorded; --seed N takes another")
	another := draw(42, "--seed", "7")
	assert.Equal(t, "drew 0.32383276483316237", another.Message, "random.seed(7)")
	assert.NotContains(t, another.Stderr, "as it was recorded")
	for _, none := range []any{nil, "42", true, 4.2} {
		r := draw(none)
		assert.NotContains(t, r.Stderr, "seed: ", none)
		assert.NotEqual(t, recorded.Message, r.Message)
	}
	first, second := draw(-1), draw(-1)
	assert.Equal(t, first.Message, second.Message)
}
