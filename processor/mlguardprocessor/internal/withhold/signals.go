package withhold

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

func (w *walker) span(span ptrace.Span) {
	w.attributes(span.Attributes())
	if name := w.name(span.Name(), span.Attributes()); name != span.Name() {
		span.SetName(name)
	}
	w.status(span.Status())
	w.state(span.TraceState())
	for _, event := range span.Events().All() {
		w.attributes(event.Attributes())
		if name := w.name(event.Name(), event.Attributes()); name != event.Name() {
			event.SetName(name)
		}
	}
	for _, link := range span.Links().All() {
		w.attributes(link.Attributes())
		w.state(link.TraceState())
	}
}

func (w *walker) status(status ptrace.Status) {
	message := status.Message()
	if message == "" || isReplacement(message) {
		return
	}
	if w.keys.Exact["status.message"] != content.Anything {
		status.SetMessage(w.text(message))
	} else if text, rules := content.Redact(message); len(rules) > 0 {
		w.replaced++
		status.SetMessage(text)
	}
}

// state keeps OpenTelemetry's sampling state and removes the other members of a
// trace state, which are opaque.
func (w *walker) state(state pcommon.TraceState) {
	raw := state.AsRaw()
	if raw == "" || isSampling(raw) {
		return
	}
	kept := ""
	for member := range strings.SplitSeq(raw, ",") {
		if member = strings.TrimSpace(member); isSampling(member) && kept == "" {
			kept = member
			continue
		}
		w.replaced++
	}
	state.FromRaw(kept)
}

// isSampling reports whether a member of a trace state is OpenTelemetry's and
// has only the threshold and the random value of its sampling.
func isSampling(member string) bool {
	fields, ok := strings.CutPrefix(member, "ot=")
	if !ok || fields == "" {
		return false
	}
	for field := range strings.SplitSeq(fields, ";") {
		name, value, _ := strings.Cut(field, ":")
		if name != "th" && name != "rv" && name != "p" && name != "r" || value == "" || len(value) > 16 || strings.Trim(value, "0123456789abcdefABCDEF") != "" {
			return false
		}
	}
	return true
}

func (w *walker) record(record plog.LogRecord) {
	w.attributes(record.Attributes())
	if name := w.name(record.EventName(), record.Attributes()); name != record.EventName() {
		record.SetEventName(name)
	}
	if text := record.SeverityText(); text != "" && !content.IsSeverity(text) && !isReplacement(text) {
		record.SetSeverityText(w.text(text))
	}
	if body := record.Body(); body.Type() != pcommon.ValueTypeStr || !w.keepsBody(record.EventName(), body.Str()) {
		w.value("body", body, w.keys.Exact["body"])
	}
}

// keepsBody reports whether the text of a record is one of this project's.
func (w *walker) keepsBody(event, text string) bool {
	return w.names.HasText(text) || w.concluded && isConclusion(event, text)
}

// isConclusion reports whether a text is what ml_metrics says in the log record of a
// change or of a problem: a few words about names that are labels anyway. Anybody can give
// a record such a name.
func isConclusion(event, text string) bool {
	return (event == mlattr.EventChange || event == mlattr.Problem) && content.Label.Fits(text)
}

func (w *walker) metric(metric pmetric.Metric) {
	if name := metric.Name(); name != "" && (!content.IsMetric(name) || !w.known.isClean(name)) {
		metric.SetName("metric_" + hash(w.hashKey, name))
		w.replaced++
	}
	if text := metric.Description(); text != "" && !w.names.HasText(text) {
		metric.SetDescription("")
		w.replaced++
	}
	if !content.IsUnit(metric.Unit()) || !w.known.isClean(metric.Unit()) {
		metric.SetUnit("")
		w.replaced++
	}
	w.attributes(metric.Metadata())
	w.points, w.owners = true, strings.HasPrefix(metric.Name(), mlattr.GPUWorkloadPrefix)
	mlattr.EachPoint(metric, func(attributes pcommon.Map, exemplars pmetric.ExemplarSlice) {
		w.attributes(attributes)
		for _, exemplar := range exemplars.All() {
			w.attributes(exemplar.FilteredAttributes())
		}
	})
	w.points, w.owners = false, false
}
