package ending

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// newest returns what a sequence of spans says, and the end of its newest work.
func newest(spans ...Span) (e Ending, worked int64) {
	for i := range spans {
		e.See(&spans[i], worked)
		if spans[i].Work {
			worked = max(worked, spans[i].End)
		}
	}
	return e, worked
}

var (
	one, other = [16]byte{1}, [16]byte{2}
	first      = Span{Trace: one, Start: 1, End: 2, Work: true}
	second     = Span{Trace: one, Start: 3, End: 4, Work: true}
)

func TestClosed(t *testing.T) {
	root := Span{Trace: one, Start: 0, End: 5, Root: true}
	for name, tt := range map[string]struct {
		spans []Span
		is    bool
	}{
		"no root":                         {[]Span{first, second}, false},
		"a root around all work":          {[]Span{first, second, root}, true},
		"a root around one step":          {[]Span{second, root}, false},
		"a root of another trace":         {[]Span{first, second, {Trace: other, Start: 0, End: 5, Root: true}}, false},
		"a root around a part":            {[]Span{first, second, {Trace: one, Start: 3, End: 5, Root: true}}, false},
		"a root that ends before":         {[]Span{first, second, {Trace: one, Start: 0, End: 3, Root: true}}, false},
		"a span with a parent":            {[]Span{first, second, {Trace: one, Start: 0, End: 5}}, false},
		"a step that is a root":           {[]Span{first, second, {Trace: one, Start: 0, End: 5, Root: true, Work: true}}, false},
		"work after it":                   {[]Span{first, second, root, {Trace: one, Start: 6, End: 7, Work: true}}, false},
		"work of it that comes late":      {[]Span{first, second, root, {Trace: one, Start: 3, End: 5, Work: true}}, true},
		"the second of two":               {[]Span{first, second, root, {Trace: other, Start: 6, End: 7, Work: true}, {Trace: other, Start: 7, End: 8, Work: true}, {Trace: other, Start: 6, End: 9, Root: true}}, false},
		"the second of two, which failed": {[]Span{first, second, root, {Trace: other, Start: 6, End: 7, Work: true}, {Trace: other, Start: 7, End: 8, Work: true}, {Trace: other, Start: 6, End: 9, Root: true, Failure: "E"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			e, worked := newest(tt.spans...)
			assert.Equal(t, tt.is, e.Closed(worked))
		})
	}
}

func TestFailed(t *testing.T) {
	failing := Span{Trace: one, Start: 5, End: 6, Work: true, Failure: "OutOfMemoryError", Operation: "forward"}
	root := Span{Trace: one, Start: 0, End: 7, Root: true, Failure: "_OTHER"}
	for name, tt := range map[string]struct {
		spans            []Span
		trained          int64
		class, operation string
	}{
		"nothing failed":                       {[]Span{first, second}, 0, "", ""},
		"the last step":                        {[]Span{first, failing}, 0, "OutOfMemoryError", "forward"},
		"a step before the last one":           {[]Span{failing, {Trace: one, Start: 8, End: 9, Work: true}}, 0, "", ""},
		"the training, although the last step": {[]Span{first, failing, {Trace: one, Start: 0, End: 9, Train: true, Failure: "ValueError"}}, 9, "OutOfMemoryError", "forward"},
		"the training alone":                   {[]Span{first, second, {Trace: one, Start: 0, End: 9, Train: true, Failure: "ValueError"}}, 9, "ValueError", ""},
		"a step of a training that did not":    {[]Span{first, failing, {Trace: one, Start: 0, End: 9, Train: true}}, 9, "", ""},
		"the root around a failed step":        {[]Span{first, failing, root}, 0, "OutOfMemoryError", "forward"},
		"a step in a root that did not":        {[]Span{first, failing, {Trace: one, Start: 0, End: 9, Root: true}}, 0, "", ""},
		"a root around no work":                {[]Span{first, second, {Trace: other, Start: 0, End: 7, Root: true, Failure: "E"}}, 0, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, worked := newest(tt.spans...)
			class, operation, ok := e.Failed(worked, tt.trained)
			assert.Equal(t, tt.class, class)
			assert.Equal(t, tt.operation, operation)
			assert.Equal(t, tt.class != "", ok)
		})
	}
}
