package vocabulary

import (
	"encoding/json"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// Some clients state the usage of a request only within its answer, as JSON or as the
// attributes of an event. It is read by the words of the general rules.

const (
	// maxAnswer is how much of an answer is searched, in bytes.
	maxAnswer = 64 << 10
	// maxUsage is how much of it may be the usage.
	maxUsage = 2 << 10
	// maxDepth is how deep a map is searched for the usage.
	maxDepth = 4
	// maxUsageEvents is how many events of a span are read, from the last.
	maxUsageEvents = 32
)

// readUsage reads the usage of a request from its answer, or from the usage itself.
func (f *Facts) readUsage(answer pcommon.Value) {
	switch answer.Type() {
	case pcommon.ValueTypeMap:
		f.readUsageMap(answer.Map(), maxDepth)
	case pcommon.ValueTypeStr:
		text := answer.Str()
		text = text[:min(len(text), maxAnswer)]
		usage := textOfUsage(text)
		if usage == "" {
			return
		}
		var fields map[string]any
		if json.NewDecoder(strings.NewReader(usage)).Decode(&fields) == nil {
			f.readFields(fields, "", maxDepth)
		}
		if model := mlattr.JSONAnsweredModel(text); model != "" {
			f.takeGeneral(generalRules["responsemodel"], pcommon.NewValueStr(model))
		}
	}
}

// textOfUsage returns the object of the first member that is named after usage, or all
// of a short object without one, or "".
func textOfUsage(text string) string {
	for rest := text; ; {
		at := strings.Index(rest, "sage")
		if at < 0 {
			break
		}
		named := at > 0 && rest[at-1]|' ' == 'u'
		if rest = rest[at+len("sage"):]; !named {
			continue
		}
		_, value, quoted := strings.Cut(rest, `"`)
		if !quoted || len(rest)-len(value) > maxWord {
			continue
		}
		value, member := strings.CutPrefix(strings.TrimLeft(value, " \n"), ":")
		if value = strings.TrimLeft(value, " \n"); member && strings.HasPrefix(value, "{") {
			return value[:min(len(value), maxUsage)]
		}
	}
	if strings.HasPrefix(text, "{") && len(text) <= maxUsage {
		return text
	}
	return ""
}

// readFields reads the members of an object by the general rules. before is the name of
// the object.
func (f *Facts) readFields(fields map[string]any, before string, depth int) {
	for key, value := range fields {
		switch value := value.(type) {
		case float64:
			f.takeCount(key, before, pcommon.NewValueDouble(value))
		case map[string]any:
			if depth > 0 {
				f.readFields(value, key, depth-1)
			}
		}
	}
}

// readUsageMap is readFields for a map, whose members may have the usage anywhere.
func (f *Facts) readUsageMap(fields pcommon.Map, depth int) {
	if fields.Len() > maxFields {
		return
	}
	for key, value := range fields.All() {
		if value.Type() != pcommon.ValueTypeMap {
			f.takeCount(key, "", value)
		} else if depth > 0 && !ofPart(key) {
			f.readUsageMap(value.Map(), depth-1)
		}
	}
}

// usageWords are words for tokens within a usage.
var usageWords = map[string]string{"input": "inputtokens", "prompt": "inputtokens", "output": "outputtokens", "completion": "outputtokens", "total": "totaltokens"}

// takeCount makes a fact of a number of tokens.
func (f *Facts) takeCount(key, before string, value pcommon.Value) {
	of, inner := generalOf(key)
	if word := usageWords[key]; word != "" {
		of = generalRules[word]
	}
	if of == nil || of.weak || of.canonical == "" || of.counts && (ofPart(before) || ofPart(inner)) {
		return
	}
	f.takeGeneral(of, value)
}

// asksInEvent makes a request of a span that states in an event which model it asks
// what, and in no attribute.
func (f *Facts) asksInEvent(span ptrace.Span) bool {
	events := span.Events()
	for i := range min(events.Len(), maxUsageEvents) {
		event := events.At(i)
		if event.Name() == mlattr.ExceptionEvent || event.Attributes().Len() > maxFields {
			continue
		}
		var model pcommon.Value
		named, messages := false, false
		for key, value := range event.Attributes().All() {
			if of, _ := generalOf(key); of != nil && of.slot == slotRequested {
				model, named = value, true
			} else if last := key[strings.LastIndexByte(key, '.')+1:]; last == "messages" || last == "prompt" {
				messages = true
			}
		}
		if named && messages {
			f.takeGeneral(generalRules["modelname"], model)
			f.SetText(slotGenAIOperation, mlattr.OperationChat)
			return true
		}
	}
	return false
}

// readEvents reads the usage of a request from the last event that has it.
func (f *Facts) readEvents(span ptrace.Span) {
	events := span.Events()
	for i := events.Len() - 1; i >= 0 && i >= events.Len()-maxUsageEvents && !f.countsTokens(); i-- {
		event := events.At(i)
		if event.Name() == mlattr.ExceptionEvent || event.Attributes().Len() > maxFields {
			continue
		}
		for key, value := range event.Attributes().All() {
			f.takeCount(key, "", value)
		}
	}
}
