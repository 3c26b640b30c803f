package spanfact_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/spanfact"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// testSpan is a span with one exception for each class. An exception of class "-" names
// none.
type testSpan struct {
	name    string
	status  ptrace.StatusCode
	message string
	attrs   map[string]any
	classes []string
}

func (t testSpan) span() ptrace.Span {
	s := ptrace.NewSpan()
	s.SetName(t.name)
	s.Status().SetCode(t.status)
	s.Status().SetMessage(t.message)
	_ = s.Attributes().FromRaw(t.attrs)
	for _, class := range t.classes {
		event := s.Events().AppendEmpty()
		event.SetName(mlattr.ExceptionEvent)
		if class != "-" {
			event.Attributes().PutStr(mlattr.ExceptionType, class)
		}
		s.Events().AppendEmpty().SetName("log")
	}
	return s
}

const (
	unset  = ptrace.StatusCodeUnset
	isOK   = ptrace.StatusCodeOk
	isFail = ptrace.StatusCodeError
)

// TestEnd says how spans ended. What the vocabulary has read and what the attributes say
// is the same.
func TestEnd(t *testing.T) {
	loads := map[string]any{mlattr.Phase: mlattr.PhaseDataLoad}
	for name, tt := range map[string]struct {
		testSpan
		failed, raised, ofLoader bool
		class                    string
	}{
		"nothing":                    {testSpan: testSpan{name: "step"}},
		"an error":                   {testSpan{status: isFail}, true, true, false, ""},
		"an exception, unset":        {testSpan{classes: []string{"E"}}, false, true, false, "E"},
		"an exception, ok":           {testSpan{status: isOK, classes: []string{"E"}}, false, false, false, "E"},
		"a class, unset":             {testSpan{attrs: map[string]any{mlattr.ErrorType: "E"}}, true, false, false, "E"},
		"a class and exception, ok":  {testSpan{status: isOK, attrs: map[string]any{mlattr.ErrorType: "E"}, classes: []string{"F"}}, true, true, false, "E"},
		"a class that is a number":   {testSpan{attrs: map[string]any{mlattr.ErrorType: 500}}, true, false, false, "500"},
		"an empty class":             {testSpan: testSpan{attrs: map[string]any{mlattr.ErrorType: ""}}},
		"the last exception counts":  {testSpan{status: isFail, classes: []string{"E", "F"}}, true, true, false, "F"},
		"the last one names nothing": {testSpan{status: isFail, classes: []string{"E", "-"}}, true, true, false, ""},
		"an unknown class":           {testSpan{status: isFail, attrs: map[string]any{mlattr.ErrorType: mlattr.Other}, classes: []string{"E"}}, true, true, false, "E"},
		"an unknown class alone":     {testSpan{attrs: map[string]any{mlattr.ErrorType: mlattr.Other}}, true, false, false, mlattr.Other},

		"a loader ends":                  {testSpan{"dataloader.next", isFail, "", loads, []string{"StopIteration"}}, false, false, true, "StopIteration"},
		"unset":                          {testSpan{"next", unset, "", loads, []string{"StopIteration"}}, false, false, true, "StopIteration"},
		"by its phase":                   {testSpan{"data_loading", isFail, "", loads, []string{"builtins.StopIteration"}}, false, false, true, "builtins.StopIteration"},
		"asynchronous":                   {testSpan{"data_loading", isFail, "", loads, []string{"StopAsyncIteration"}}, false, false, true, "StopAsyncIteration"},
		"by its name":                    {testSpan{"MyDataLoader.__next__", isFail, "", nil, []string{"StopIteration"}}, false, false, true, "StopIteration"},
		"a mistake":                      {testSpan{"next", isFail, "", nil, []string{"StopIteration"}}, true, true, false, "StopIteration"},
		"a mistake of another phase":     {testSpan{"", isFail, "", map[string]any{mlattr.Phase: mlattr.PhaseForward}, []string{"StopIteration"}}, true, true, false, "StopIteration"},
		"below a loader":                 {testSpan{"query", isFail, "", map[string]any{mlattr.Phase: mlattr.PhaseDataLoad, mlattr.CorrelationSource: mlattr.InheritedPhase}, []string{"StopIteration"}}, true, true, false, "StopIteration"},
		"a loader fails":                 {testSpan{"dataloader.next", isFail, "", loads, []string{"ValueError"}}, true, true, false, "ValueError"},
		"a loader fails later":           {testSpan{"dataloader.next", isFail, "", loads, []string{"StopIteration", "ValueError"}}, true, true, false, "ValueError"},
		"a loader handles and ends":      {testSpan{"dataloader.next", isFail, "", loads, []string{"ValueError", "StopIteration"}}, false, false, true, "StopIteration"},
		"a loader fails, nobody says by": {testSpan{"dataloader.next", isFail, "", loads, nil}, true, true, false, ""},
		"through Ray":                    {testSpan{"dataloader.next", isFail, "", loads, []string{"ray.exceptions.RayTaskError(StopIteration)"}}, false, false, true, "ray.exceptions.RayTaskError(StopIteration)"},
		"its status says so":             {testSpan{"dataloader.next", isFail, "StopIteration: ", nil, nil}, false, false, true, ""},
		"its status repeats":             {testSpan{"dataloader.next", isFail, "StopIteration()", nil, nil}, false, false, true, ""},
		"its status says so of others":   {testSpan{"dataloader.next", isFail, "StopIteration: ", map[string]any{mlattr.ErrorType: mlattr.Other}, nil}, false, false, true, mlattr.Other},
		"its attributes say so":          {testSpan{"dataloader.next", isFail, "", map[string]any{mlattr.ExceptionType: "StopIteration"}, nil}, false, false, true, ""},
		"its attributes say another":     {testSpan{"dataloader.next", isFail, "StopIteration", map[string]any{mlattr.ExceptionType: "OSError"}, nil}, true, true, false, ""},
		"its status says another":        {testSpan{"dataloader.next", isFail, "OSError: StopIteration", nil, nil}, true, true, false, ""},
		"its status is not asked":        {testSpan{"dataloader.next", isFail, "StopIteration", nil, []string{"OSError"}}, true, true, false, "OSError"},
		"ml_enrich says so":              {testSpan{"x", isFail, "", map[string]any{mlattr.EpochEnd: true}, []string{"E"}}, false, false, true, "E"},
		"ml_enrich says no":              {testSpan{"x", isFail, "", map[string]any{mlattr.EpochEnd: false}, nil}, true, true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := tt.span()
			_, f := vocabulary.Classify(pcommon.NewMap(), "", s)
			for how, end := range map[string]spanfact.End{"facts": spanfact.EndOf(f), "attributes": spanfact.EndIn(s.Attributes())} {
				assert.Equal(t, tt.failed, end.Failed(s), how)
				assert.Equal(t, tt.raised, end.Raised(s), how)
				assert.Equal(t, tt.ofLoader, end.OfLoader(s), how)
				assert.Equal(t, tt.class, end.Class(s), how)
				assert.Equal(t, tt.ofLoader && tt.status == isFail, end.LoaderEnded(s), how)
			}
		})
	}
}

// TestClassThatIsNotText: a class in no valid encoding is still one.
func TestClassThatIsNotText(t *testing.T) {
	s := testSpan{attrs: map[string]any{mlattr.ErrorType: "\xff"}}.span()
	end := spanfact.EndIn(s.Attributes())
	assert.True(t, end.Failed(s))
	assert.Equal(t, mlattr.Other, end.Class(s))
}

func TestException(t *testing.T) {
	s := testSpan{classes: []string{"E", "F"}}.span()
	s.Events().At(2).Attributes().PutStr("exception.message", "broken")
	v, ok := spanfact.ExceptionType(s)
	assert.True(t, ok)
	assert.Equal(t, "F", v.Str())
	assert.Equal(t, "broken", spanfact.ExceptionMessage(s))
	class, raised := spanfact.ExceptionClass(s)
	assert.True(t, raised)
	assert.Equal(t, "F", class)

	s = testSpan{classes: []string{"E", "-"}}.span()
	_, ok = spanfact.ExceptionType(s)
	assert.False(t, ok)
	class, raised = spanfact.ExceptionClass(s)
	assert.True(t, raised)
	assert.Empty(t, class)

	s = testSpan{}.span()
	_, ok = spanfact.ExceptionType(s)
	assert.False(t, ok)
	_, raised = spanfact.ExceptionClass(s)
	assert.False(t, raised)
	assert.Empty(t, spanfact.ExceptionMessage(s))
}

// TestRaisedInCall: the exception of a call counts whatever the status, that of another
// span does not.
func TestRaisedInCall(t *testing.T) {
	for name, want := range map[string]bool{"training_controller.create_model": true, "step": false} {
		s := testSpan{name: name, classes: []string{"-"}}.span()
		_, f := vocabulary.Classify(pcommon.NewMap(), "", s)
		assert.Equal(t, want, spanfact.RaisedInCall(f, s), name)
		s = testSpan{name: name}.span()
		assert.False(t, spanfact.RaisedInCall(f, s), name)
	}
}
