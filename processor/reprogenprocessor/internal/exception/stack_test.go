package exception

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
)

const chained = `Traceback (most recent call last):
  File "/srv/app/data.py", line 12, in load
    return parse(row)
           ^^^^^^^^^^
  File "/usr/lib/python3.12/json/__init__.py", line 346, in loads
    return _default_decoder.decode(s)
  File "/srv/app/data.py", line 30, in parse
    raise KeyError("x")
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/srv/app/main.py", line 3, in <module>
    main()
my.pkg.LoadError: cannot load
`

func TestRootCause(t *testing.T) {
	assert.Equal(t, failure.Cause{Type: "KeyError", Frames: []failure.Frame{{Module: "app/data", Function: "parse"}, {Module: "app/data", Function: "load"}}}, RootCause(chained))
	assert.Equal(t, failure.Cause{}, RootCause(""))
	assert.Equal(t, failure.Cause{}, RootCause("** (RuntimeError) an Elixir trace\n    (app 0.1.0) lib/app.ex:3: App.run/1\n"))
	comprehension := "Traceback (most recent call last):\n  File \"/a/b.py\", line 3, in f\n  File \"/a/b.py\", line 3, in <listcomp>\nValueError: x\n"
	assert.Equal(t, []failure.Frame{{Module: "a/b", Function: "f"}}, RootCause(comprehension).Frames)
	recursive := "Traceback (most recent call last):\n" + strings.Repeat("  File \"/a/b.py\", line 3, in f\n    f()\n", 50)
	assert.Len(t, RootCause(recursive+"RecursionError: too deep\n").Frames, 1)
}

func FuzzRootCause(f *testing.F) {
	f.Add(chained)
	f.Fuzz(func(t *testing.T, stack string) {
		assert.LessOrEqual(t, len(RootCause(stack).Frames), maxFrames)
	})
}
