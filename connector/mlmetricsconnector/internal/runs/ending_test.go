package runs

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// saidOfEnd is what a span says of the end of its program.
type saidOfEnd struct {
	Trace              [16]byte
	Start, End         int64
	Root, Work, Train  bool
	Failure, Operation string
}

// newest returns what a sequence of spans says, and the end of its newest work.
func newest(spans ...saidOfEnd) (e ending, worked int64) {
	for i := range spans {
		s := &spans[i]
		of := Span{Trace: s.Trace, Timed: s.Work, Root: s.Root, EndsRun: s.Train, Failure: s.Failure, Operation: s.Operation}
		of.Time.Start, of.Time.End = s.Start, s.End
		e.see(&of, worked)
		if spans[i].Work {
			worked = max(worked, spans[i].End)
		}
	}
	return e, worked
}

var (
	one, other = [16]byte{1}, [16]byte{2}
	first      = saidOfEnd{Trace: one, Start: 1, End: 2, Work: true}
	second     = saidOfEnd{Trace: one, Start: 3, End: 4, Work: true}
)

func TestClosed(t *testing.T) {
	root := saidOfEnd{Trace: one, Start: 0, End: 5, Root: true}
	for name, tt := range map[string]struct {
		spans []saidOfEnd
		is    bool
	}{
		"no root":                         {[]saidOfEnd{first, second}, false},
		"a root around all work":          {[]saidOfEnd{first, second, root}, true},
		"a root around one step":          {[]saidOfEnd{second, root}, false},
		"a root of another trace":         {[]saidOfEnd{first, second, {Trace: other, Start: 0, End: 5, Root: true}}, false},
		"a root around a part":            {[]saidOfEnd{first, second, {Trace: one, Start: 3, End: 5, Root: true}}, false},
		"a root that ends before":         {[]saidOfEnd{first, second, {Trace: one, Start: 0, End: 3, Root: true}}, false},
		"a span with a parent":            {[]saidOfEnd{first, second, {Trace: one, Start: 0, End: 5}}, false},
		"a step that is a root":           {[]saidOfEnd{first, second, {Trace: one, Start: 0, End: 5, Root: true, Work: true}}, false},
		"work after it":                   {[]saidOfEnd{first, second, root, {Trace: one, Start: 6, End: 7, Work: true}}, false},
		"work of it that comes late":      {[]saidOfEnd{first, second, root, {Trace: one, Start: 3, End: 5, Work: true}}, true},
		"the second of two":               {[]saidOfEnd{first, second, root, {Trace: other, Start: 6, End: 7, Work: true}, {Trace: other, Start: 7, End: 8, Work: true}, {Trace: other, Start: 6, End: 9, Root: true}}, false},
		"the second of two, which failed": {[]saidOfEnd{first, second, root, {Trace: other, Start: 6, End: 7, Work: true}, {Trace: other, Start: 7, End: 8, Work: true}, {Trace: other, Start: 6, End: 9, Root: true, Failure: "E"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			e, worked := newest(tt.spans...)
			assert.Equal(t, tt.is, e.isClosed(worked))
		})
	}
}

func TestFailed(t *testing.T) {
	failing := saidOfEnd{Trace: one, Start: 5, End: 6, Work: true, Failure: "OutOfMemoryError", Operation: "forward"}
	root := saidOfEnd{Trace: one, Start: 0, End: 7, Root: true, Failure: "_OTHER"}
	for name, tt := range map[string]struct {
		spans            []saidOfEnd
		trained          int64
		class, operation string
	}{
		"nothing failed":                       {[]saidOfEnd{first, second}, 0, "", ""},
		"the last step":                        {[]saidOfEnd{first, failing}, 0, "OutOfMemoryError", "forward"},
		"a step before the last one":           {[]saidOfEnd{failing, {Trace: one, Start: 8, End: 9, Work: true}}, 0, "", ""},
		"the training, although the last step": {[]saidOfEnd{first, failing, {Trace: one, Start: 0, End: 9, Train: true, Failure: "ValueError"}}, 9, "OutOfMemoryError", "forward"},
		"the training alone":                   {[]saidOfEnd{first, second, {Trace: one, Start: 0, End: 9, Train: true, Failure: "ValueError"}}, 9, "ValueError", ""},
		"a step of a training that did not":    {[]saidOfEnd{first, failing, {Trace: one, Start: 0, End: 9, Train: true}}, 9, "", ""},
		"the root around a failed step":        {[]saidOfEnd{first, failing, root}, 0, "OutOfMemoryError", "forward"},
		"a step in a root that did not":        {[]saidOfEnd{first, failing, {Trace: one, Start: 0, End: 9, Root: true}}, 0, "", ""},
		"a root around no work":                {[]saidOfEnd{first, second, {Trace: other, Start: 0, End: 7, Root: true, Failure: "E"}}, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, worked := newest(tt.spans...)
			f := e.failed(worked, tt.trained)
			assert.Equal(t, tt.class, f.Class)
			assert.Equal(t, tt.operation, f.Operation)
		})
	}
}
