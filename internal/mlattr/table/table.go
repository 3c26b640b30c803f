// Package table describes what a client sends: the parts of a table of names, of
// which package clients has one for each client.
package table

import (
	"fmt"
	"slices"
)

// Kind says how a value is read and which type its canonical attribute has.
type Kind uint8

// WordTrue is the value of Alias.Words for a KindBool that is true.
const WordTrue = "true"

// String returns the type that a value of this kind is written as.
func (k Kind) String() string { return wordOf(k, kindTexts[:]) }

// UnmarshalText reads the kind's word.
func (k *Kind) UnmarshalText(text []byte) error { return readWord(k, text, kindWords[:]) }

// wordOf returns the word of a value, or "".
func wordOf[T ~uint8](value T, words []string) string {
	if int(value) < len(words) {
		return words[value]
	}
	return ""
}

// readWord reads the value of a word.
func readWord[T ~uint8](into *T, text []byte, words []string) error {
	at := slices.Index(words, string(text))
	if at < 0 || len(text) == 0 {
		return fmt.Errorf("%q is none of %q", text, words)
	}
	*into = T(at) // #nosec G115 -- there are a few words
	return nil
}

// Alias maps an attribute of a client to a canonical attribute.
type Alias struct {
	// Source is the client's attribute key.
	Source string
	// Canonical is the canonical attribute.
	Canonical string
	// Kind is how the value is read. Zero means the kind of the canonical
	// attribute.
	Kind Kind
	// Factor converts the client's unit into the canonical unit. Zero means 1.
	// A text that has its own unit is not multiplied.
	Factor float64
	// Offset is added to a whole number, where a client counts from another one
	// than 1. It applies to KindInt only.
	Offset int64
	// Inverse is true for a time for each unit, where the canonical attribute
	// is units a second. It applies to KindSeconds only.
	Inverse bool
	// Words map the client's words to canonical values, which are "true" and
	// "false" for KindBool. Other words give no fact. Nil accepts every text.
	Words map[string]string
	// Reads is the name of the function of package clients that returns the canonical
	// value of the client's text, or "" for no fact. It is applied before Words. Empty
	// is the text itself.
	Reads string
	// SpanPrefixes limits the alias to spans whose names begin with one of
	// them. Empty means all spans.
	SpanPrefixes []string `yaml:"span_prefixes"`
}

// PrefixAlias maps every key that begins with Prefix to a canonical double:
// Canonical followed by the end of the key.
type PrefixAlias struct {
	Prefix    string
	Canonical string
}

// MapAlias maps the fields of one attribute, a map or the JSON of one, to
// canonical attributes.
type MapAlias struct {
	// Source is the client's attribute key.
	Source string
	// Fields are tried in this order. Source is a field's key, or two keys with
	// a dot between them for a field of a field.
	Fields []Alias
}

// FirstToken is a span event that marks the first token of an answer.
type FirstToken struct {
	// Event is the name of the event.
	Event string
	// Repeated is true where every part of an answer has such an event. The
	// first one counts. If the SDK dropped events, it dropped the oldest ones,
	// and then none counts.
	Repeated bool
}

// Match is how a NameRule compares a span's name with its Text.
type Match uint8

// UnmarshalText reads the word for how to match.
func (m *Match) UnmarshalText(text []byte) error { return readWord(m, text, matchWords[:]) }

// NameRule is what a span's name says about the span.
type NameRule struct {
	Match Match
	Text  string

	// Phase, Operation, Role and LossScope are the values of the canonical
	// attributes of these names. Empty sets nothing. An attribute of the span
	// goes before the name.
	Phase     string
	Operation string
	Role      string
	LossScope string `yaml:"loss_scope"`
	// Number is the canonical attribute that the digits of a Numbered name are
	// the value of.
	Number string

	// Call is the part of a call that the span is. CallOf is the function that
	// is called, where the span does not name it itself.
	Call   CallPart
	CallOf string `yaml:"call_of"`
	// Queued is true for a span that begins when its work is accepted. It
	// contains the wait, and a span below it is the work.
	Queued bool
	// WholeStep is true for a span that contains all of a training step. A step
	// ends with it unless an optimizer or another such span below it did so.
	WholeStep bool `yaml:"whole_step"`

	// Identifies is true where the name alone identifies the client. Otherwise
	// the rule applies only where the resource, the scope, an attribute or
	// Evidence does.
	Identifies bool
	// Evidence are up to 32 attribute keys, or beginnings of keys that end in a
	// dot or an underscore. A span of this name is the client's if it has one
	// of them and no parent, or two of them.
	Evidence []string
}

// Table is the vocabulary of one client.
type Table struct {
	// Name is the client's name in configuration.
	Name string
	// Title is the client's name in documentation.
	Title string
	// Page is the address of a page that defines the client's names. It is
	// empty where only the source does.
	Page string

	// Services are values of service.name that identify the client. A value
	// that ends in "*" matches every name that begins with the rest.
	Services []string
	// Scopes are beginnings of names of instrumentation scopes that identify
	// the client.
	Scopes []string
	// Signature are resource keys that together identify the client.
	Signature []string
	// KeyPrefixes are the client's own name spaces. An alias whose Source
	// begins with one applies everywhere, and its presence identifies the
	// client.
	KeyPrefixes []string `yaml:"key_prefixes"`
	// MetricPrefixes are beginnings of names of metrics that identify the
	// client.
	MetricPrefixes []string `yaml:"metric_prefixes"`
	// Side is the value of the attribute Side for what the client's metrics
	// count. Empty means that only one service counts it.
	Side string
	// Replicas are keys of point attributes that number processes of one server.
	// All of them report the same value, so only that of process 0 counts.
	Replicas []string
	// Unbounded are keys of points of metrics with a MetricPrefix whose values never
	// end, such as the number of an operation. They never become labels.
	Unbounded []string

	Resource []Alias
	// Span applies to spans and log records.
	Span         []Alias
	SpanPrefixes []PrefixAlias `yaml:"span_prefixes"`
	SpanMaps     []MapAlias    `yaml:"span_maps"`
	FirstTokens  []FirstToken  `yaml:"first_tokens"`
	Point        []Alias
	Names        []NameRule
	Metrics      []Metric

	// Traits are the client's properties that its telemetry does not state.
	Traits []Trait
	// WorkerServices are values of service.name of processes that work for the
	// runs of their callers.
	WorkerServices []string `yaml:"worker_services"`
	// Events are the events whose names have a meaning. PoolKeys are the keys
	// of span attributes that name the pool of workers that the span's events
	// are about.
	Events   []Event
	PoolKeys []string `yaml:"pool_keys"`
	// Calls and ModelCall are where the client records calls of functions and
	// requests to models.
	Calls     CallKeys
	ModelCall ModelCall `yaml:"model_call"`
	// ToolArguments are keys of what a tool was called with, on spans that execute
	// one.
	ToolArguments []string `yaml:"tool_arguments"`
	// Wrappers are names of spans that repeat the token usage of the calls
	// below them.
	Wrappers []string
	// Changes are attributes of resources and of requests to models that show a
	// change when their value is another.
	Changes []ChangeKey
	// Gateways are values of GenAIProviderName, in small letters, that name the
	// client, which passes requests on to the provider that its models begin with.
	Gateways []string
	// Packages are the client's top-level Python packages.
	Packages []string
}

// Trait is a property of a client that its spans do not state and that rules
// depend on. A table lists the traits of its client; System.Has and System.With
// ask for them. A client without a trait is treated as one that nothing is
// known about.
type Trait uint8

// String returns what the trait says of a client, for documentation.
func (t Trait) String() string { return wordOf(t, traitTexts[:]) }

// UnmarshalText reads the trait's word.
func (t *Trait) UnmarshalText(text []byte) error { return readWord(t, text, traitWords[:]) }

// EventKind says what a client's event reports. A client may send an event as a
// span event or as a span of that name.
type EventKind uint8

// UnmarshalText reads the kind's word.
func (k *EventKind) UnmarshalText(text []byte) error { return readWord(k, text, eventKindWords[:]) }

// Event is one event of a client by its name.
type Event struct {
	Name string
	Kind EventKind
}

// ChangeKey says which change an attribute shows when its value is another.
type ChangeKey struct {
	// Source is the key of the attribute.
	Source string
	// Kind is one of the Change values.
	Kind string
	// Name is the setting or the framework, or which part of an image the value
	// is: see the Image values. It is empty for other kinds.
	Name string
	// NameKey is the key of the attribute of the same resource that has the Name,
	// or is "".
	NameKey string `yaml:"name_key"`
}
