package vocabulary

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

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

// readUsage reads the usage of a request from its answer, or from the usage itself where
// the key is one of usage.
func (s *modelSpan) readUsage(answer pcommon.Value, itself bool) {
	switch answer.Type() {
	case pcommon.ValueTypeMap:
		s.readUsageMap(answer.Map(), itself, maxDepth)
	case pcommon.ValueTypeStr:
		text := answer.Str()
		text = text[:min(len(text), maxAnswer)]
		if itself {
			s.readObject(text)
			return
		}
		for rest := text; rest != "" && !s.countsTokens(); {
			var usage string
			if usage, rest = cutUsage(rest); usage != "" {
				s.readObject(usage)
			}
		}
		if model := mlattr.JSONAnsweredModel(text); model != "" && s.countsTokens() {
			generalRules["responsemodel"].take(s.Facts, pcommon.NewValueStr(model))
		}
	}
}

// readObject reads the members of a usage that a text begins with.
func (s *modelSpan) readObject(text string) {
	var fields map[string]any
	if text = text[:min(len(text), maxUsage)]; json.NewDecoder(strings.NewReader(text)).Decode(&fields) == nil {
		s.readFields(fields, "", maxDepth)
	}
}

// isUsage reports whether a member is named after usage.
func isUsage(name string) bool {
	var word [maxWord]byte
	of := generalRules[string(fold(name, word[:0]))]
	return of != nil && of.Usage
}

// cutUsage returns the value of the next member of a JSON text that is named after usage
// and is an object, or "", and the text behind its name.
func cutUsage(text string) (value, rest string) {
	at, part := strings.Index(text, "sage"), "sage"
	if billed := strings.Index(text, "illed"); billed >= 0 && (at < 0 || billed < at) {
		at, part = billed, "illed"
	}
	if at < 0 {
		return "", ""
	}
	rest = text[at+len(part):]
	begins := strings.LastIndexByte(text[max(at-maxWord, 0):at], '"')
	ends := strings.IndexByte(rest[:min(len(rest), maxWord)], '"')
	if begins < 0 || ends < 0 || !isUsage(text[max(at-maxWord, 0)+begins+1:at]+part+rest[:ends]) {
		return "", rest
	}
	rest = rest[ends+1:]
	value, member := strings.CutPrefix(strings.TrimLeft(rest, " \n"), ":")
	if value = strings.TrimLeft(value, " \n"); !member || !strings.HasPrefix(value, "{") {
		return "", rest
	}
	return value, rest
}

// readFields reads the members of a usage by the general rules. before is the name of the
// object. Of two that say the same, the one that is not 0 counts.
func (s *modelSpan) readFields(fields map[string]any, before string, depth int) {
	names := slices.Sorted(maps.Keys(fields))
	for _, zero := range [...]bool{false, true} {
		for _, name := range names {
			switch value := fields[name].(type) {
			case float64:
				if (value == 0) == zero {
					s.takeCount(name, before, pcommon.NewValueDouble(value), true)
				}
			case map[string]any:
				if depth > 0 && !zero {
					s.readFields(value, name, depth-1)
				}
			}
		}
	}
}

// readUsageMap reads a map, whose members may have the usage anywhere.
func (s *modelSpan) readUsageMap(fields pcommon.Map, usage bool, depth int) {
	if fields.Len() > maxFields {
		return
	}
	for key, value := range fields.All() {
		if value.Type() != pcommon.ValueTypeMap {
			s.takeCount(key, "", value, usage)
		} else if depth > 0 && !ofPart(key) {
			s.readUsageMap(value.Map(), isUsage(key), depth-1)
		}
	}
}

// usageWords are words for tokens within a usage.
var usageWords = map[string]string{"input": "inputtokens", "prompt": "inputtokens", "output": "outputtokens", "completion": "outputtokens", "total": "totaltokens"}

// takeCount makes a fact of a number of tokens. usage reports whether it is a member of a
// usage.
func (s *modelSpan) takeCount(key, before string, value pcommon.Value, usage bool) {
	of, inner := generalOf(key)
	if word := usageWords[key]; word != "" && usage {
		of = generalRules[word]
	}
	if of == nil || of.Weak || of.canonical == "" || of.Counts && (ofPart(before) || ofPart(inner)) {
		return
	}
	of.take(s.Facts, value)
}

// asksInEvent makes a request of a span that states in an event which model it asks
// what, and in no attribute.
func (s *modelSpan) asksInEvent() bool {
	events := s.span.Events()
	for i := range min(events.Len(), maxUsageEvents) {
		event := events.At(i)
		if event.Name() == mlattr.ExceptionEvent || event.Attributes().Len() > maxFields {
			continue
		}
		var model pcommon.Value
		var rule *generalRule
		messages := false
		for key, value := range event.Attributes().All() {
			if of, before := generalOf(key); of != nil && of.slot == SlotGenAIRequestModel && !ofDevice(before) {
				rule, model = of, value
			} else if last := key[strings.LastIndexByte(key, '.')+1:]; last == "messages" || last == "prompt" {
				messages = true
			}
		}
		if messages && rule != nil {
			rule.take(s.Facts, model)
			if s.At(SlotGenAIRequestModel) != nil {
				s.SetText(SlotGenAIOperationName, mlattr.OperationChat)
				return true
			}
		}
	}
	return false
}

// readEvents reads the usage of a request from the last event that has it.
func (s *modelSpan) readEvents() {
	events := s.span.Events()
	for i := events.Len() - 1; i >= 0 && i >= events.Len()-maxUsageEvents && !s.countsTokens(); i-- {
		event := events.At(i)
		if event.Name() == mlattr.ExceptionEvent || event.Attributes().Len() > maxFields {
			continue
		}
		for key, value := range event.Attributes().All() {
			s.takeCount(key, "", value, false)
		}
	}
}
