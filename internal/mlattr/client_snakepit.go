package mlattr

import "strings"

// snakepit is the vocabulary of Snakepit, which calls Python workers from
// Elixir. Its Python side and its Elixir side share only the correlation id.
//
// The durations in its events are no canonical attributes. ml_metrics reads
// them, in the units that the documentation of Snakepit states.
func snakepit() Table {
	events := []string{"snakepit."}
	infer := []string{"snakepit.ml.inference"}
	train := []string{"snakepit.ml.train_step"}
	return Table{
		Name:           "snakepit",
		Packages:       []string{"snakepit"},
		Title:          "Snakepit",
		Page:           "https://hexdocs.pm/snakepit/",
		Services:       []string{"snakepit*"},
		Scopes:         []string{"snakepit"},
		KeyPrefixes:    []string{"snakepit."},
		MetricPrefixes: []string{"snakepit."},
		Traits:         []Trait{ProcessIsRun},
		WorkerServices: []string{"snakepit.python.bridge"},
		Events:         snakepitEvents,
		PoolKeys:       []string{"snakepit.pool"},
		Calls:          snakepitCalls(),
		ToolArguments:  []string{"snakepit.args", "snakepit.kwargs"},
		PrintsError:    snakepitError,
		Resource: []Alias{
			{Source: "service_name", Canonical: ServiceName},
		},
		Span: []Alias{
			{Source: "snakepit.session_id", Canonical: SessionID},
			{Source: "snakepit.correlation_id", Canonical: RequestID, Kind: KindJobID},
			{Source: "snakepit.command", Canonical: Operation},
			{Source: "snakepit.tool", Canonical: Function},
			{Source: "snakepit.grpc.duration_ms", Canonical: Latency, Factor: 1e-3},
			{Source: "snakepit.grpc.error_kind", Canonical: ErrorType},
			{Source: "snakepit.grpc.error", Canonical: ErrorType, Reads: pythonType},
			{Source: "operation", Canonical: Operation, SpanPrefixes: events},
			{Source: "library", Canonical: Library, SpanPrefixes: events},
			{Source: "function", Canonical: Function, SpanPrefixes: events},
			{Source: "error_type", Canonical: ErrorType, SpanPrefixes: events},
			{Source: "device", Canonical: GPUIndex, Kind: KindDevice, SpanPrefixes: events},
			{Source: "session_id", Canonical: SessionID, SpanPrefixes: events},
			{Source: "correlation_id", Canonical: RequestID, Kind: KindJobID, SpanPrefixes: events},
			{Source: "model", Canonical: GenAIRequestModel, SpanPrefixes: infer},
			{Source: "batch_size", Canonical: BatchSize, SpanPrefixes: infer},
			{Source: "tokens_per_second", Canonical: TokensPerSecond, SpanPrefixes: infer},
			{Source: "loss", Canonical: Loss, SpanPrefixes: train},
			{Source: "learning_rate", Canonical: LearningRate, SpanPrefixes: train},
			{Source: "epoch", Canonical: Epoch, SpanPrefixes: train},
			{Source: "step", Canonical: Step, SpanPrefixes: train},
			{Source: "batch_size", Canonical: BatchSize, SpanPrefixes: train},
		},
		Point: []Alias{
			{Source: "model", Canonical: GenAIRequestModel},
			{Source: "device", Canonical: GPUIndex, Kind: KindDevice},
			{Source: "library", Canonical: Library},
			{Source: "function", Canonical: Function},
			{Source: "operation", Canonical: Operation},
			{Source: "error_type", Canonical: ErrorType},
		},
		Metrics: []Metric{
			{Source: "snakepit.ml.inference.tokens_per_second", Measure: MeasureTokenThroughput, Instrument: Histogram, TokenType: TokenTypeOutput},
			{Source: "snakepit.call.total", Measure: MeasureRequests, Instrument: Counter},
			// PyTorch's numbers, divided by 1024 twice.
			// snakepit.gpu.memory.used_mb is nvidia-smi's number of the whole
			// GPU, not of the client.
			{Source: "snakepit.memory.gpu.allocated_mb", Measure: MeasureGPUMemory, Instrument: Gauge, Unit: "MiBy", Part: PartAllocated},
			{Source: "snakepit.memory.gpu.reserved_mb", Measure: MeasureGPUMemory, Instrument: Gauge, Unit: "MiBy", Part: PartReserved},
		},
		Names: []NameRule{
			{Match: Exact, Text: "snakepit.ml.inference", Operation: "inference", Identifies: true},
			{Match: Exact, Text: "snakepit.ml.train_step", Operation: "train_step", Phase: PhaseTrain, LossScope: LossScopeBatch, Identifies: true},
			{Match: Exact, Text: "snakepit.ml.tensor_op", Operation: "tensor_op", Identifies: true},
			{Match: Exact, Text: "snakepit.call.stop", Identifies: true, Call: SharedCall},
			{Match: Exact, Text: "snakepit.call.exception", Identifies: true, Call: SharedCall},
			{Match: Prefix, Text: "snakepit.grpc.", Identifies: true, Call: SharedCall},
			{Match: Prefix, Text: "snakepit.", Identifies: true},
			{Match: Exact, Text: "BridgeService/Ping", Operation: "ping"},
			{Match: Exact, Text: "BridgeService/InitializeSession", Operation: "initialize_session"},
			{Match: Exact, Text: "BridgeService/CleanupSession", Operation: "cleanup_session"},
			{Match: Exact, Text: "BridgeService/GetSession", Operation: "get_session"},
			{Match: Exact, Text: "BridgeService/Heartbeat", Operation: "heartbeat"},
			{Match: Exact, Text: "BridgeService/ExecuteTool", Operation: "execute_tool", Call: FunctionPart},
			{Match: Exact, Text: "BridgeService/ExecuteStreamingTool", Operation: "execute_streaming_tool", Call: FunctionPart},
			{Match: Exact, Text: "HeartbeatClient/SendPing", Operation: "heartbeat"},
		},
	}
}

var snakepitEvents = []Event{
	{"snakepit.ml.train_step", EventTrainStep},
	{"snakepit.ml.inference", EventInference},
	{"snakepit.call.start", EventCallStart},
	{"snakepit.call.stop", EventCallStop},
	{"snakepit.call.exception", EventCallException},
	{"snakepit.pool.checkout", EventPoolCheckout},
	{"snakepit.serialize.stop", EventSerialize},
	{"snakepit.pool.size", EventPoolSize},
	{"snakepit.worker.crash", EventWorkerCrash},
	{"snakepit.circuit_breaker.open", EventBreakerOpen},
	{"snakepit.circuit_breaker.opened", EventBreakerOpen},
	{"snakepit.health.alert", EventHealthAlert},
	{"snakepit.memory.allocate", EventMemoryAllocate},
	{"snakepit.memory.release", EventMemoryRelease},
	{"snakepit.memory.gpu", EventGPUMemory},
}

// snakepitCalls are the keys of its calls. Most are sent with and without its
// name space.
func snakepitCalls() CallKeys {
	both := func(name string) []string { return []string{name, "snakepit." + name} }
	return CallKeys{
		Payload:      []string{"snakepit.payload"},
		Library:      both("library"),
		Module:       both("python_module"),
		Function:     both("function"),
		Args:         both("args"),
		Kwargs:       both("kwargs"),
		Type:         both("call_type"),
		Correlation:  []string{"snakepit.correlation_id", "correlation_id"},
		ErrorType:    []string{"snakepit.grpc.error_kind"},
		ErrorMessage: []string{"snakepit.grpc.error"},
	}
}

// snakepitStructure begins Elixir's print of one of Snakepit's errors.
const snakepitStructure = "%Snakepit.Error."

// pythonType finds the class of a Python exception in Elixir's print of an
// error, which is a structure of Snakepit's own:
//
//	%Snakepit.Error.PythonException{message: "…", python_type: "json.decoder.JSONDecodeError", …}
//
// Quotes within its texts are escaped, so a message cannot hold the field. Any
// other error names no class: its text is no label.
func pythonType(text string) string {
	const field = `python_type: "`
	if !strings.HasPrefix(text, snakepitStructure) {
		return ""
	}
	_, rest, ok := strings.Cut(text, field)
	if !ok {
		return ""
	}
	name, _, ok := strings.Cut(rest[:min(len(rest), MaxText+1)], `"`)
	if !ok || !dotted(name) {
		return ""
	}
	return name
}

// dotted reports whether text is the name of a Python class, with or without
// modules.
func dotted(text string) bool {
	for i := range len(text) {
		c := text[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
		if !letter && (i == 0 || c != '.' && (c < '0' || c > '9')) {
			return false
		}
	}
	return text != ""
}

// snakepitError reads Elixir's print of an error that came from Python:
//
//	%Snakepit.Error.PythonException{message: "…", python_type: "ValueError"}
//	%Snakepit.Error.ValueError{message: "…", …}
func snakepitError(text string) (PrintedError, bool) {
	rest, ok := strings.CutPrefix(text, snakepitStructure)
	if !ok {
		return PrintedError{}, false
	}
	name, fields, ok := strings.Cut(rest, "{")
	if !ok || len(name) > 2*MaxText || !dotted(name) {
		return PrintedError{}, false
	}
	e := PrintedError{Type: name}
	if name == "PythonException" {
		e.Type = ""
	}
	for len(fields) > 0 {
		quote := strings.IndexByte(fields, '"')
		if quote < 0 {
			break
		}
		before := fields[:quote]
		value, after := elixirText(fields[quote+1:])
		fields = after
		switch {
		case strings.HasSuffix(before, " message: "), before == "message: ":
			e.Message = value
		case strings.HasSuffix(before, " python_type: "), before == "python_type: ":
			e.Type = value
		case strings.HasSuffix(before, "traceback: "), strings.HasSuffix(before, "stacktrace: "):
			e.Stack = value
		}
	}
	if e.Type == "" && e.Message == "" {
		return PrintedError{}, false
	}
	return e, true
}

// elixirText returns a text up to its closing quote, and what comes after.
func elixirText(s string) (text, after string) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '"':
			return b.String(), s[i+1:]
		case s[i] == '\\' && i+1 < len(s):
			i++
			switch s[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
				b.WriteByte('\r')
			case 'e':
				b.WriteByte(0x1B)
			default:
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), "" // cut off on its way
}
