package clients

import (
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// snakepit is the vocabulary of Snakepit, which calls Python workers from
// Elixir. Its Python side and its Elixir side share only the correlation id.
//
// The durations in its events are no canonical attributes. ml_metrics reads
// them, in the units that the documentation of Snakepit states.
func snakepit() table.Table {
	events := []string{"snakepit."}
	infer := []string{"snakepit.ml.inference"}
	train := []string{"snakepit.ml.train_step"}
	return table.Table{
		Name:           "snakepit",
		Packages:       []string{"snakepit"},
		Title:          "Snakepit",
		Page:           "https://hexdocs.pm/snakepit/",
		Services:       []string{"snakepit*"},
		Scopes:         []string{"snakepit"},
		KeyPrefixes:    []string{"snakepit."},
		MetricPrefixes: []string{"snakepit."},
		Traits:         []table.Trait{table.ProcessIsRun},
		WorkerServices: []string{"snakepit.python.bridge"},
		Events:         snakepitEvents,
		PoolKeys:       []string{"snakepit.pool"},
		Calls:          snakepitCalls(),
		ToolArguments:  []string{"snakepit.args", "snakepit.kwargs"},
		PrintsError:    snakepitError,
		Resource: []table.Alias{
			{Source: "service_name", Canonical: mlattr.ServiceName},
		},
		Span: []table.Alias{
			{Source: "snakepit.session_id", Canonical: mlattr.SessionID},
			{Source: "snakepit.correlation_id", Canonical: mlattr.RequestID, Kind: table.KindJobID},
			{Source: "snakepit.command", Canonical: mlattr.Operation},
			{Source: "snakepit.tool", Canonical: mlattr.Function},
			{Source: "snakepit.grpc.duration_ms", Canonical: mlattr.Latency, Factor: 1e-3},
			{Source: "snakepit.grpc.error_kind", Canonical: mlattr.ErrorType},
			{Source: "snakepit.grpc.error", Canonical: mlattr.ErrorType, Reads: pythonType},
			{Source: "operation", Canonical: mlattr.Operation, SpanPrefixes: events},
			{Source: "library", Canonical: mlattr.Library, SpanPrefixes: events},
			{Source: "function", Canonical: mlattr.Function, SpanPrefixes: events},
			{Source: "error_type", Canonical: mlattr.ErrorType, SpanPrefixes: events},
			{Source: "device", Canonical: mlattr.GPUIndex, Kind: table.KindDevice, SpanPrefixes: events},
			{Source: "session_id", Canonical: mlattr.SessionID, SpanPrefixes: events},
			{Source: "correlation_id", Canonical: mlattr.RequestID, Kind: table.KindJobID, SpanPrefixes: events},
			{Source: "model", Canonical: mlattr.GenAIRequestModel, SpanPrefixes: infer},
			{Source: "batch_size", Canonical: mlattr.BatchSize, SpanPrefixes: infer},
			{Source: "tokens_per_second", Canonical: mlattr.TokensPerSecond, SpanPrefixes: infer},
			{Source: "loss", Canonical: mlattr.Loss, SpanPrefixes: train},
			{Source: "learning_rate", Canonical: mlattr.LearningRate, SpanPrefixes: train},
			{Source: "epoch", Canonical: mlattr.Epoch, SpanPrefixes: train},
			{Source: "step", Canonical: mlattr.Step, SpanPrefixes: train},
			{Source: "batch_size", Canonical: mlattr.BatchSize, SpanPrefixes: train},
		},
		Point: []table.Alias{
			{Source: "model", Canonical: mlattr.GenAIRequestModel},
			{Source: "device", Canonical: mlattr.GPUIndex, Kind: table.KindDevice},
			{Source: "library", Canonical: mlattr.Library},
			{Source: "function", Canonical: mlattr.Function},
			{Source: "operation", Canonical: mlattr.Operation},
			{Source: "error_type", Canonical: mlattr.ErrorType},
		},
		Metrics: []table.Metric{
			{Source: "snakepit.ml.inference.tokens_per_second", Measure: table.MeasureTokenThroughput, Instrument: table.Histogram, TokenType: mlattr.TokenTypeOutput},
			{Source: "snakepit.call.total", Measure: table.MeasureRequests, Instrument: table.Counter},
			// PyTorch's numbers, divided by 1024 twice.
			// snakepit.gpu.memory.used_mb is nvidia-smi's number of the whole
			// GPU, not of the client.
			{Source: "snakepit.memory.gpu.allocated_mb", Measure: table.MeasureGPUMemory, Instrument: table.Gauge, Unit: "MiBy", Part: mlattr.PartAllocated},
			{Source: "snakepit.memory.gpu.reserved_mb", Measure: table.MeasureGPUMemory, Instrument: table.Gauge, Unit: "MiBy", Part: mlattr.PartReserved},
		},
		Names: []table.NameRule{
			{Match: table.Exact, Text: "snakepit.ml.inference", Operation: "inference", Identifies: true},
			{Match: table.Exact, Text: "snakepit.ml.train_step", Operation: "train_step", Phase: mlattr.PhaseTrain, LossScope: mlattr.LossScopeBatch, Identifies: true},
			{Match: table.Exact, Text: "snakepit.ml.tensor_op", Operation: "tensor_op", Identifies: true},
			{Match: table.Exact, Text: "snakepit.call.stop", Identifies: true, Call: table.SharedCall},
			{Match: table.Exact, Text: "snakepit.call.exception", Identifies: true, Call: table.SharedCall},
			{Match: table.Prefix, Text: "snakepit.grpc.", Identifies: true, Call: table.SharedCall},
			{Match: table.Prefix, Text: "snakepit.", Identifies: true},
			{Match: table.Exact, Text: "BridgeService/Ping", Operation: "ping"},
			{Match: table.Exact, Text: "BridgeService/InitializeSession", Operation: "initialize_session"},
			{Match: table.Exact, Text: "BridgeService/CleanupSession", Operation: "cleanup_session"},
			{Match: table.Exact, Text: "BridgeService/GetSession", Operation: "get_session"},
			{Match: table.Exact, Text: "BridgeService/Heartbeat", Operation: "heartbeat"},
			{Match: table.Exact, Text: "BridgeService/ExecuteTool", Operation: "execute_tool", Call: table.FunctionPart},
			{Match: table.Exact, Text: "BridgeService/ExecuteStreamingTool", Operation: "execute_streaming_tool", Call: table.FunctionPart},
			{Match: table.Exact, Text: "HeartbeatClient/SendPing", Operation: "heartbeat"},
		},
	}
}

var snakepitEvents = []table.Event{
	{Name: "snakepit.ml.train_step", Kind: table.EventTrainStep},
	{Name: "snakepit.ml.inference", Kind: table.EventInference},
	{Name: "snakepit.call.start", Kind: table.EventCallStart},
	{Name: "snakepit.call.stop", Kind: table.EventCallStop},
	{Name: "snakepit.call.exception", Kind: table.EventCallException},
	{Name: "snakepit.pool.checkout", Kind: table.EventPoolCheckout},
	{Name: "snakepit.serialize.stop", Kind: table.EventSerialize},
	{Name: "snakepit.pool.size", Kind: table.EventPoolSize},
	{Name: "snakepit.worker.crash", Kind: table.EventWorkerCrash},
	{Name: "snakepit.circuit_breaker.open", Kind: table.EventBreakerOpen},
	{Name: "snakepit.circuit_breaker.opened", Kind: table.EventBreakerOpen},
	{Name: "snakepit.health.alert", Kind: table.EventHealthAlert},
	{Name: "snakepit.memory.allocate", Kind: table.EventMemoryAllocate},
	{Name: "snakepit.memory.release", Kind: table.EventMemoryRelease},
	{Name: "snakepit.memory.gpu", Kind: table.EventGPUMemory},
}

// snakepitCalls are the keys of its calls. Most are sent with and without its
// name space.
func snakepitCalls() table.CallKeys {
	both := func(name string) []string { return []string{name, "snakepit." + name} }
	return table.CallKeys{
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
	name, _, ok := strings.Cut(rest[:min(len(rest), mlattr.MaxText+1)], `"`)
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
func snakepitError(text string) (table.PrintedError, bool) {
	rest, ok := strings.CutPrefix(text, snakepitStructure)
	if !ok {
		return table.PrintedError{}, false
	}
	name, fields, ok := strings.Cut(rest, "{")
	if !ok || len(name) > 2*mlattr.MaxText || !dotted(name) {
		return table.PrintedError{}, false
	}
	e := table.PrintedError{Type: name}
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
		return table.PrintedError{}, false
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
	return b.String(), "" // CutText off on its way
}
