package mlattr

import (
	"slices"
	"strings"
)

// CallPart says which part of a call a span is. A call is one invocation of a
// function, possibly in another process.
type CallPart uint8

const (
	// NoCall is a span that is no part of a call.
	NoCall CallPart = iota
	// WholeCall is a call that no other span records.
	WholeCall
	// SharedCall is a call that spans above or below may record as well.
	SharedCall
	// FunctionPart is the time in the function that was called.
	FunctionPart
	// QueuePart is the wait for the worker that runs the function.
	QueuePart
)

// String names the part, for documentation.
func (p CallPart) String() string {
	switch p {
	case WholeCall:
		return "a call"
	case SharedCall:
		return "a call, which other spans may record as well"
	case FunctionPart:
		return "the function of a call"
	case QueuePart:
		return "the wait of a call"
	default:
		return ""
	}
}

// Call returns which part of a call the span is, by the rule for its name, and
// the function where the name says it.
func (f *Facts) Call() (part CallPart, function string) {
	if f.name == nil {
		return NoCall, ""
	}
	return f.name.Call, f.name.CallOf
}

// Queued reports whether the span lasts from when its work was accepted, so
// that it contains a wait. The work itself is a span below.
func (f *Facts) Queued() bool { return f.name != nil && f.name.Queued }

// WholeStep reports whether the span contains all of a training step.
func (f *Facts) WholeStep() bool { return f.name != nil && f.name.WholeStep }

// CallKeys are the attribute keys under which a client records calls and what
// became of them. The first key that a span has counts.
type CallKeys struct {
	// Payload has the whole call as JSON.
	Payload []string
	// Library, Module and Function name what was called.
	Library, Module, Function []string
	// Args and Kwargs have the arguments, as a list or map or the JSON of one.
	Args, Kwargs []string
	// Type says what was called: function, class, module_attr or dynamic.
	Type []string
	// Correlation has an id that spans of one call share across traces.
	Correlation []string

	// CodeSpans are beginnings of the names of spans that run code which a
	// model wrote. Code is the key of the code there, Output that of what it
	// printed, its traceback included.
	CodeSpans, Code, Output []string

	// ErrorType and ErrorMessage have the class and the text of an error, on
	// spans without an exception event.
	ErrorType, ErrorMessage []string
}

func (k *CallKeys) lists() []*[]string {
	return []*[]string{
		&k.Payload, &k.Library, &k.Module, &k.Function, &k.Args, &k.Kwargs, &k.Type, &k.Correlation,
		&k.CodeSpans, &k.Code, &k.Output, &k.ErrorType, &k.ErrorMessage,
	}
}

var callKeys = func() (all CallKeys) {
	for _, t := range Tables() {
		for i, list := range t.Calls.lists() {
			to := all.lists()[i]
			*to = append(*to, *list...)
		}
	}
	return all
}()

// Calls returns the keys of all clients, in the order of the tables. The caller
// may change the lists.
func Calls() CallKeys {
	all := callKeys
	for _, list := range all.lists() {
		*list = slices.Clone(*list)
	}
	return all
}

// IsCorrelation reports whether an attribute's key is one of
// CallKeys.Correlation. It costs next to nothing for any other key.
func IsCorrelation(key string) bool { return correlationKeys.has(key) }

var correlationKeys = keySetOf(callKeys.Correlation)

// RunsCode reports whether a span of this name runs code that a model wrote;
// see CallKeys.CodeSpans.
func RunsCode(name string) bool {
	return slices.ContainsFunc(callKeys.CodeSpans, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// keySet finds out whether a key is one of a few. It looks at a key only if its
// length is that of one of them.
type keySet struct {
	lengths uint64
	keys    []string
}

func keySetOf(keys []string) keySet {
	set := keySet{keys: keys}
	for _, key := range keys {
		set.lengths |= lengthBit(key)
	}
	return set
}

func (s *keySet) has(key string) bool {
	return s.lengths&lengthBit(key) != 0 && slices.Contains(s.keys, key)
}
