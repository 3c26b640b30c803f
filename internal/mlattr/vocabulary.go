package mlattr

import "strings"

// System is one vocabulary, or a set of several as a bit mask. Zero is none.
type System uint32

// The vocabularies. Each has a file with its table.
const (
	TorchTel System = 1 << iota
	TuFT
	Snakepit
	FX
	TaskWeaver
	GenAI
	VLLM
	OpenLLMetry
	OpenInference
	Vercel
	MLflow
	Langfuse
	TGI
	SGLang
	Transformers
	TorchTitan
	Megatron

	endOfSystems

	// AllSystems is every vocabulary.
	AllSystems = endOfSystems - 1
)

// Kind says how a value is read and which type its canonical attribute has.
type Kind uint8

const (
	// KindText is a label: valid UTF-8, cut to MaxText bytes.
	KindText Kind = iota + 1
	// KindID is an identifier: see ReadID. It is written as a string.
	KindID
	// KindJobID is an identifier that drops the schedulers' sentinels.
	KindJobID
	// KindInt is a whole number, from an integer, a double or numeric text.
	KindInt
	// KindCount is a whole number that is not negative.
	KindCount
	// KindDouble is a finite number, from an integer, a double or text.
	KindDouble
	// KindBool is true or false.
	KindBool
	// KindDevice is a GPU index, from 0, "0", "cuda:0" or "{:cuda, 0}". It
	// is written as an integer.
	KindDevice
	// KindSeconds is a time in seconds that is not negative, from a number, or
	// from text with its unit, such as "45.6ms". A negative one is known to be
	// wrong: no other attribute stands in for it.
	KindSeconds
	// KindInstant is a point in time, from text after RFC 3339.
	KindInstant
	// KindSecret is text that no one may copy: it is read, hashed by the
	// processor and never written as it is.
	KindSecret
)

// String is the type that a value of this kind is written as.
func (k Kind) String() string {
	switch k {
	case KindText, KindID, KindJobID, KindSecret:
		return "string"
	case KindInt, KindCount, KindDevice, KindInstant:
		return "int"
	case KindDouble, KindSeconds:
		return "double"
	case KindBool:
		return "boolean"
	default:
		return ""
	}
}

// Alias says that a client sends a canonical attribute under another name.
type Alias struct {
	// Source is the client's attribute key.
	Source string
	// Canonical is the attribute that it means.
	Canonical string
	// Kind is how the value is read; zero is the canonical attribute's kind.
	Kind Kind
	// Factor converts the client's unit into the canonical one; zero is 1. A
	// text that says its own unit is not converted by it.
	Factor float64
	// Inverse is true for a time that each of something took, where the
	// canonical attribute is how many there are in a second. It is for
	// KindSeconds only.
	Inverse bool
	// Words are the client's words for the values of the canonical attribute.
	// Any other word says nothing. Nil is every text.
	Words map[string]string
	// Reads turns the client's text into the canonical value. It returns ""
	// for a text that has none; the attribute says nothing then. Nil is the
	// text itself. It is called with text of any length and content, before
	// Words are.
	Reads func(text string) string
	// SpanPrefixes limits the alias to spans whose name begins with one of
	// them; empty is no limit. It has no meaning outside spans.
	SpanPrefixes []string
}

// PrefixAlias says that every key beginning with Prefix is one canonical
// double each: Canonical followed by what comes after Prefix.
type PrefixAlias struct {
	Prefix    string
	Canonical string
}

// MapAlias says that a client sends several canonical attributes as one, whose
// value is a map or the JSON of one.
type MapAlias struct {
	// Source is the client's attribute key.
	Source string
	// Fields are the map's, in the order in which they are tried. Source is
	// the field's key; within a field that is a map itself, the two keys with
	// a dot between them.
	Fields []Alias
}

// FirstToken is an event of a span that shows when its first token came.
type FirstToken struct {
	// Event is the event's name.
	Event string
	// Repeated is true where each part of an answer is such an event, and the
	// first is meant. SDKs drop the oldest events of many, and then the first
	// that arrived says nothing.
	Repeated bool
}

// Match says how a NameRule compares a span's name with its Text.
type Match uint8

const (
	// Exact is the whole name.
	Exact Match = iota
	// Prefix is the name's beginning.
	Prefix
	// Suffix is the name's end, with something before it.
	Suffix
	// Numbered is Text followed by digits and nothing else.
	Numbered
)

// NameRule says what a span's name tells about the span.
type NameRule struct {
	Match Match
	Text  string

	// Phase, Operation, Role and LossScope become the canonical attributes
	// of these names; empty sets nothing. An attribute that says the same
	// wins over the name.
	Phase     string
	Operation string
	Role      string
	LossScope string
	// Number is the canonical attribute of the digits of a Numbered name.
	Number string

	// Call says which part of a call the span is, and CallOf the function that
	// is called where the span itself does not name it.
	Call   CallPart
	CallOf string
	// Queued is true for a span that lasts from when its work was accepted. It
	// contains the wait, and the work is a span below.
	Queued bool

	// Identifies is true where the name alone is enough to recognise the
	// client. Otherwise the rule holds only where the resource, the scope,
	// an attribute or Evidence has shown whose span it is.
	Identifies bool
	// Evidence lists up to 32 attribute keys (or beginnings of keys, where
	// one ends in a dot or an underscore). Any one of them makes a span of
	// this name, without a parent, the client's; with a parent it takes two.
	Evidence []string
}

// Table is the vocabulary of one client.
type Table struct {
	// System is the table's own bit, or zero where it holds for everyone.
	System System
	// Name is what a user writes under "vocabularies".
	Name string
	// Title is what the client's people call it.
	Title string
	// Page is where its names can be looked up; empty where that is the
	// client's source only.
	Page string

	// Services are values of service.name that identify the client. One
	// that ends in "*" is a beginning.
	Services []string
	// Scopes are beginnings of instrumentation scope names that do.
	Scopes []string
	// Signature are resource keys that identify the client when all of
	// them are present.
	Signature []string
	// KeyPrefixes are the client's own name spaces: an alias whose source
	// begins with one holds everywhere, and its presence identifies the
	// client.
	KeyPrefixes []string
	// MetricPrefixes are beginnings of metric names that do.
	MetricPrefixes []string

	Resource []Alias
	// Span holds for spans and for log records.
	Span         []Alias
	SpanPrefixes []PrefixAlias
	SpanMaps     []MapAlias
	FirstTokens  []FirstToken
	Point        []Alias
	Names        []NameRule
	Metrics      []Metric

	// Traits are the client's properties that its spans do not state.
	Traits []Trait
	// WorkerServices are values of service.name of processes that work for the
	// runs of their callers.
	WorkerServices []string
	// Events are those whose names say more than an attribute does, and
	// PoolKeys the keys of span attributes that name the events' pool of workers.
	Events   []Event
	PoolKeys []string
	// Calls and ModelCall are where the client's spans have calls of functions
	// and requests to models.
	Calls     CallKeys
	ModelCall ModelCall
	// Wrappers are names of spans that repeat the token usage of the calls
	// below them.
	Wrappers []string
	// PrintsError reads an error from the client's print of it; see
	// ReadPrintedError. It is nil where the client has no print of its own.
	PrintsError func(text string) (PrintedError, bool)
	// PlainKeys are keys whose values say where and how something ran and never
	// on what data.
	PlainKeys []string
	// Runners are the client's programs and Python modules that run whatever
	// their arguments name.
	Runners []string
}

// Tables returns every vocabulary in the order in which their rules are
// tried. The launchers' table and the users' are always part of a Reader; the
// others can be selected.
func Tables() []Table {
	return []Table{
		launchers(), torchTel(), tuft(), snakepit(), fx(), taskWeaver(),
		genAI(), vllm(), openLLMetry(), openInference(), vercel(), mlflow(), langfuse(), tgi(),
		sglang(), transformers(), torchTitan(), megatron(), users(),
	}
}

// SystemNames lists what ParseSystem accepts, in the tables' order.
func SystemNames() []string {
	var names []string
	for _, t := range Tables() {
		if t.System != 0 {
			names = append(names, t.Name)
		}
	}
	return names
}

// ParseSystem returns the vocabulary of a name, and false for an unknown one.
func ParseSystem(name string) (System, bool) {
	for _, t := range Tables() {
		if t.System != 0 && t.Name == name {
			return t.System, true
		}
	}
	return 0, false
}

// systemNames has the name of each bit of a System.
var systemNames = func() map[System]string {
	names := make(map[System]string)
	for _, t := range Tables() {
		if t.System != 0 {
			names[t.System] = t.Name
		}
	}
	return names
}()

// String names the vocabularies of a set, separated by commas.
func (s System) String() string {
	var names []string
	for bit := TorchTel; bit < endOfSystems; bit <<= 1 {
		if s&bit != 0 {
			names = append(names, systemNames[bit])
		}
	}
	return strings.Join(names, ",")
}
