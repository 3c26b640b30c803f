package table

// CallPart says which part of a call a span is. A call is one invocation of a
// function, possibly in another process.
type CallPart uint8

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
	CodeSpans    []string `yaml:"code_spans"`
	Code, Output []string

	// ErrorType and ErrorMessage have the class and the text of an error, on
	// spans without an exception event.
	ErrorType    []string `yaml:"error_type"`
	ErrorMessage []string `yaml:"error_message"`
}

// String names the part, for documentation.
func (p CallPart) String() string { return wordOf(p, callPartTexts[:]) }

// UnmarshalText reads the part's word.
func (p *CallPart) UnmarshalText(text []byte) error { return readWord(p, text, callPartWords[:]) }

// Lists returns the lists of all fields, in an order that is always the same.
func (k *CallKeys) Lists() []*[]string {
	return []*[]string{
		&k.Payload, &k.Library, &k.Module, &k.Function, &k.Args, &k.Kwargs, &k.Type, &k.Correlation,
		&k.CodeSpans, &k.Code, &k.Output, &k.ErrorType, &k.ErrorMessage,
	}
}

// ModelCall is where a client's spans have a request to a model.
type ModelCall struct {
	// OperationKeys name the span's operation, and Requests are the operations,
	// in small letters, that are one request to a model.
	OperationKeys []string `yaml:"operation_keys"`
	Requests      []string
	// AddressKeys have the base URL of the model's API.
	AddressKeys []string `yaml:"address_keys"`
}
