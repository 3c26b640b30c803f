package withhold_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/withhold"
)

// secret has a form that no list and no form allows.
const secret = "alice@example.com"

// plant puts a text under a key, under known ones and as a key, alone and within
// other values.
func plant(attributes pcommon.Map, key, text string, raw []byte) {
	attributes.PutStr(key, text)
	attributes.PutStr(text, text)
	for _, known := range []string{"service.name", "user.id", "code.file.path", "gen_ai.request.model", "result", "request.id", "password"} {
		attributes.PutStr(known, text)
	}
	attributes.PutEmptyBytes(key + ".bytes").FromRaw(raw)
	inner := attributes.PutEmptyMap(key + ".map")
	inner.PutEmptySlice(text).AppendEmpty().SetStr(text)
	inner.PutInt(key, 7)
	list := attributes.PutEmptySlice("gen_ai.response.finish_reasons")
	list.AppendEmpty().SetStr(text)
	list.AppendEmpty().SetEmptyMap().PutStr(text, text)
}

func fuzzTraces(name, key, text string, raw []byte) ptrace.Traces {
	td := ptrace.NewTraces()
	rs := td.ResourceSpans().AppendEmpty()
	rs.SetSchemaUrl(text)
	plant(rs.Resource().Attributes(), key, text, raw)
	ss := rs.ScopeSpans().AppendEmpty()
	ss.SetSchemaUrl(text)
	ss.Scope().SetName(text)
	ss.Scope().SetVersion(text)
	plant(ss.Scope().Attributes(), key, text, raw)
	for _, name := range []string{name + text, text, "chat " + text, text + " send"} {
		span := ss.Spans().AppendEmpty()
		span.SetName(name)
		span.Status().SetMessage(text)
		span.TraceState().FromRaw(text)
		plant(span.Attributes(), key, text, raw)
		event := span.Events().AppendEmpty()
		event.SetName(name)
		plant(event.Attributes(), key, text, raw)
		link := span.Links().AppendEmpty()
		link.TraceState().FromRaw("ot=th:c," + text)
		plant(link.Attributes(), key, text, raw)
	}
	return td
}

func fuzzMetrics(name, key, text string, raw []byte) pmetric.Metrics {
	md := pmetric.NewMetrics()
	sm := md.ResourceMetrics().AppendEmpty().ScopeMetrics().AppendEmpty()
	sm.Scope().SetName(text)
	for _, name := range []string{name, name + text, text, "nvidia.gpu.workload.use"} {
		metric := sm.Metrics().AppendEmpty()
		metric.SetName(name)
		metric.SetDescription(text)
		metric.SetUnit(text)
		plant(metric.Metadata(), key, text, raw)
		point := metric.SetEmptySum().DataPoints().AppendEmpty()
		plant(point.Attributes(), key, text, raw)
		plant(point.Exemplars().AppendEmpty().FilteredAttributes(), key, text, raw)
	}
	return md
}

func fuzzLogs(name, key, text string, raw []byte) plog.Logs {
	ld := plog.NewLogs()
	sl := ld.ResourceLogs().AppendEmpty().ScopeLogs().AppendEmpty()
	for _, body := range []func(pcommon.Value){
		func(v pcommon.Value) { v.SetStr(text) },
		func(v pcommon.Value) { v.SetEmptyBytes().FromRaw(raw) },
		func(v pcommon.Value) { plant(v.SetEmptyMap(), key, text, raw) },
		func(v pcommon.Value) { plant(v.SetEmptySlice().AppendEmpty().SetEmptyMap(), key, text, raw) },
	} {
		record := sl.LogRecords().AppendEmpty()
		body(record.Body())
		record.SetEventName(name + text)
		record.SetSeverityText(text)
		plant(record.Attributes(), key, text, raw)
	}
	return ld
}

// Whatever stands around it, and wherever it is, a text that no list allows does
// not leave; and what came out comes out unchanged.
func FuzzNothingUnlistedLeaves(f *testing.F) {
	f.Add("chat ", "acme.note", "", "")
	f.Add("GET /", "a", "postgres://", ":hunter2")
	f.Add("batch_", "user", "\"", "\"")
	f.Add("", "", "[text: #", "]")
	f.Add("", "x", "XID 7: ", " @ ")
	f.Add("ot=", "@sha256:", "@sha256:", "µ")
	filter := withhold.New(&withhold.Config{HashKey: "fuzz"})
	f.Fuzz(func(t *testing.T, name, key, before, after string) {
		text := before + secret + after
		raw := []byte(text)
		td, md, ld := fuzzTraces(name, key, text, raw), fuzzMetrics(name, key, text, raw), fuzzLogs(name, key, text, raw)
		filter.Traces(td)
		filter.Metrics(md)
		filter.Logs(t.Context(), ld)
		for signal, left := range map[string]func() ([]byte, error){
			"traces":  func() ([]byte, error) { return (&ptrace.ProtoMarshaler{}).MarshalTraces(td) },
			"metrics": func() ([]byte, error) { return (&pmetric.ProtoMarshaler{}).MarshalMetrics(md) },
			"logs":    func() ([]byte, error) { return (&plog.ProtoMarshaler{}).MarshalLogs(ld) },
		} {
			sent, err := left()
			require.NoError(t, err)
			assert.NotContains(t, string(sent), secret, "%s of %q under %q", signal, text, key)
		}
		assert.Zero(t, filter.Traces(td), "a second pass over traces")
		assert.Zero(t, filter.Metrics(md), "a second pass over metrics")
		assert.Zero(t, filter.Logs(t.Context(), ld), "a second pass over logs")
	})
}
