package vocabulary

import (
	"cmp"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// Clients that no table lists call the same things by the same words, in name spaces of
// their own: acme.usage.prompt_tokens, x.session_id. The last word of such a key, in
// small letters and without separators, says what the value is. A table's rule goes
// first. general.yaml has the words and says what their rows mean.

// generalTable is general.yaml.
type generalTable struct {
	Words      []GeneralRule
	Operations map[string]string
	// Steps and Requests are the operations that are never requests, and always.
	Steps, Requests []string
	APIPaths        []apiPath `yaml:"api_paths"`
}

// rankGeneral is the rank of the general rules: after the tables.
const rankGeneral = 1 << 19

// maxWord is the longest word that is looked up, in bytes without separators, and maxWords
// how much of the end of a key is read.
const maxWord, maxWords = 32, 64

// GeneralRule is a row of the words of keys that have a canonical meaning in any client's
// telemetry.
type GeneralRule struct {
	Canonical                           string
	Words                               []string
	Counts, Weak, Holds, Usage, Address bool
	Kind                                table.Kind
	Factor                              float64
	Reads                               string
	Later                               bool
}

// GeneralRules are all of them, for documentation.
func GeneralRules() []GeneralRule { return general.Words }

// generalReads are the functions that they name in Reads.
var generalReads = map[string]func(text string) string{
	"json_model":   mlattr.JSONModel,
	"operation":    operationOf,
	"status":       mlattr.StatusIn,
	"failed_level": failedLevel,
}

// generalRule is what a word says.
type generalRule struct {
	rule
	*GeneralRule
}

// generalRules are the rules by their words.
var generalRules = func() map[string]*generalRule {
	rules := make(map[string]*generalRule)
	for i := range general.Words {
		row := &general.Words[i]
		of := &generalRule{GeneralRule: row, rule: rule{
			canonical: row.Canonical, slot: SlotOf(row.Canonical), where: onSpan, rank: rankGeneral,
			kind: cmp.Or(row.Kind, kinds[row.Canonical]), factor: row.Factor, reads: generalReads[row.Reads],
		}}
		if row.Later {
			of.rank++
		}
		of.readOnly = readOnly(row.Canonical, of.kind)
		for _, word := range row.Words {
			rules[word] = of
		}
	}
	return rules
}()

// endings has a bit for the last three letters of each word, and wordHashes one for the hash of
// each word from its end: most keys cost no more.
var endings, wordHashes = func() (ends [1 << 10]uint32, hashes [1 << 10]uint32) {
	for word := range generalRules {
		n := len(word)
		ends[endOf(word[n-3], word[n-2])] |= 1 << (word[n-1] & 31)
		hash := uint32(hashBasis)
		for i := n - 1; i >= 0; i-- {
			hash = (hash ^ uint32(word[i])) * hashPrime
		}
		hashes[hash>>22] |= 1 << (hash >> 17 & 31)
	}
	return ends, hashes
}()

// The basis and the prime of FNV-1a.
const hashBasis, hashPrime = 2166136261, 16777619

// endOf mixes two letters, in any case.
func endOf(x, y byte) int { return int(x&31)<<5 | int(y&31) }

// mayEnd reports whether a key may end in a word. The third letter from its end may be a
// separator, as in session.id.
func mayEnd(key string) bool {
	n := len(key)
	if n < 4 {
		return false
	}
	third := key[n-3]
	return third < 'A' || third == '_' || endings[endOf(third, key[n-2])]&(1<<(key[n-1]&31)) != 0
}

func operationOf(text string) string {
	var word [maxWord]byte
	return general.Operations[string(fold(strings.Trim(text, `"`), word[:0]))]
}

// isStep reports whether a word for what a span is says that it is a step of a program, and
// no request, whatever else the span states.
func isStep(kind string) bool { return slices.Contains(general.Steps, strings.ToLower(kind)) }

// asksByItself reports whether a word for what a span is means a request to a model in
// every program.
func asksByItself(kind string) bool {
	var word [maxWord]byte
	return slices.Contains(general.Requests, string(fold(strings.Trim(kind, `"`), word[:0])))
}

// failedLevel reads the level of what a span reports.
func failedLevel(text string) string {
	if strings.EqualFold(text, "error") {
		return mlattr.Other
	}
	return ""
}

// fold appends a text in small letters without separators, or nothing where it is longer
// than what it is appended to.
func fold(text string, to []byte) []byte {
	for i := range len(text) {
		c := letters[text[i]]
		if c == 0 {
			continue
		}
		if len(to) == cap(to) {
			return to[:0]
		}
		to = append(to, c)
	}
	return to
}

// letters has each byte of a word as a small letter, or 0 for a separator.
var letters = func() (small [256]byte) {
	for c := range small {
		small[c] = byte(c) // #nosec G115 -- an index
	}
	for c := byte('A'); c <= 'Z'; c++ {
		small[c] = c + 'a' - 'A'
	}
	for _, c := range []byte("_- .:/") {
		small[c] = 0
	}
	return small
}()

// generalOf returns the rule of a key that no table lists, by its last two words or by
// its last, or nil. before is what the key says before them.
func generalOf(key string) (of *generalRule, before string) {
	if !mayEnd(key) {
		return nil, ""
	}
	var space [maxWord]byte
	hash, second := uint32(hashBasis), false
	for i := len(key) - 1; i >= max(-1, len(key)-maxWords); i-- {
		if i >= 0 && key[i] != '.' && key[i] != ':' && key[i] != '/' {
			if c := letters[key[i]]; c != 0 {
				hash = (hash ^ uint32(c)) * hashPrime
			}
			continue
		}
		if wordHashes[hash>>22]&(1<<(hash>>17&31)) != 0 {
			if found := generalRules[string(fold(key[i+1:], space[:0]))]; found != nil {
				of, before = found, key[:max(i, 0)]
			}
		}
		if second {
			break
		}
		second = true
	}
	return of, before
}

// ofDevice reports whether the words before a model say that it is a machine's.
func ofDevice(before string) bool { return strings.HasSuffix(before, "device") }

// ofPart reports whether the words before a number of tokens say that it is a part of
// another, or the sum of several requests, or no use at all.
func ofPart(before string) bool {
	return before == "max" || strings.HasSuffix(before, ".max") ||
		slices.ContainsFunc(partWords, func(word string) bool { return strings.Contains(before, word) })
}

var partWords = []string{"detail", "cache", "audio", "image", "reasoning", "aggregat", "limit", "budget", "cumulative"}

// collectGeneral reads an attribute by the general rules.
func collectGeneral(key string, value pcommon.Value, f *Facts) {
	of, before := generalOf(key)
	switch {
	case of == nil:
	case of.Address:
		f.asksAPI = f.asksAPI || value.Type() == pcommon.ValueTypeStr && isModelAPI(value.Str())
	case of.Weak || of.Holds:
		if len(f.general) < maxGeneral && !ofDevice(before) {
			f.general = append(f.general, generalCandidate{of, value, strings.Contains(before, "response")})
		}
	case !of.Counts && !strings.Contains(before, "aggregat") || of.Counts && !ofPart(before):
		of.take(f, value)
	}
}

// isModelAPI reports whether an address, or its path, is that of a request to a model.
func isModelAPI(address string) bool {
	address, _, _ = strings.Cut(address, "?")
	return slices.ContainsFunc(general.APIPaths, func(api apiPath) bool {
		return strings.HasSuffix(address, api.Path) && strings.Contains(address, api.Host)
	})
}

type apiPath struct{ Path, Host string }

// AsksAPI reports whether a span that a client of HTTP made asks the API of a model. The
// span says nothing else of the request.
func (f *Facts) AsksAPI() bool { return f.asksAPI }

// maxGeneral bounds the attributes of a span that wait for what else it says.
const maxGeneral = 32

// generalCandidate is an attribute that a weak rule applies to.
type generalCandidate struct {
	of    *generalRule
	value pcommon.Value
	// ofAnswer is true where the key names a response.
	ofAnswer bool
}

// take makes a fact of an attribute. A value that cannot be read is none, nor is a
// word for none.
func (of *generalRule) take(f *Facts, value pcommon.Value) {
	if value.Type() == pcommon.ValueTypeStr && (value.Str() == "null" || value.Str() == "None") {
		return
	}
	if of.kind == table.KindText && of.reads == nil && value.Type() == pcommon.ValueTypeStr && strings.HasPrefix(value.Str(), `"`) {
		value = pcommon.NewValueStr(mlattr.JSONText(value.Str()))
	}
	if of.reads == nil {
		var fact Fact
		if !read(&fact, of.kind, value) {
			return
		}
	}
	of.rule.take(f, value, "")
}

// modelSpan is a span of which the general rules find out whether it is a request to a
// model, and what it used.
type modelSpan struct {
	*Facts
	span ptrace.Span
}

// settle makes facts of the attributes that wait for what else the span says, and
// finds the usage of a request that states it as JSON or in an event.
func (s *modelSpan) settle() {
	operation := s.TextAt(SlotGenAIOperationName)
	if operation == "" {
		s.readNameOfFailure()
		if len(s.general) == 0 && s.span.Events().Len() == 0 && !s.countsTokens() {
			return
		}
		if s.countsTokens() || s.namesModel() || s.isOf(asksByItself) {
			s.takeWeak(func(of *generalRule) bool { return of.slot == SlotGenAIOperationName })
		}
		if operation = s.TextAt(SlotGenAIOperationName); operation == "" && !s.countsTokens() {
			if !s.asksInEvent() {
				return
			}
			operation = s.TextAt(SlotGenAIOperationName)
		}
		if operation == "" && s.namesModel() && asksByItself(s.span.Name()) {
			operation = mlattr.OperationChat
			s.SetText(SlotGenAIOperationName, operation)
		}
	}
	asks := AsksModel(operation)
	if asks && (s.isOf(isStep) || s.isMoment()) {
		s.SetBool(SlotRequestCounted, false)
	}
	s.takeWeak(func(of *generalRule) bool {
		switch of.slot {
		case SlotErrorType:
			return asks
		case SlotGenAIToolName:
			return operation == mlattr.OperationExecuteTool
		default:
			return true
		}
	})
	if !asks || s.countsTokens() {
		return
	}
	for i := range s.general {
		if c := &s.general[i]; c.of.Holds {
			s.readUsage(c.value, c.of.Usage)
		}
	}
	if !s.countsTokens() {
		s.readEvents()
	}
}

// maxMoment is shorter than any request.
const maxMoment = pcommon.Timestamp(1e6)

// isMoment reports whether a span below another one takes no time, and says nothing of a
// request but that it is one: it is an event of the request, such as a token.
func (s *modelSpan) isMoment() bool {
	return !s.span.ParentSpanID().IsEmpty() && s.span.EndTimestamp() < s.span.StartTimestamp()+maxMoment && s.span.Status().Code() != ptrace.StatusCodeError &&
		!s.countsTokens() && !s.namesModel()
}

// readNameOfFailure makes a request of a client's span that failed before its instrumentation
// wrote any attribute but that of the failure: the conventions name it after its operation and
// its model.
func (s *modelSpan) readNameOfFailure() {
	if others := s.span.Attributes().Len(); others > 1 || others == 1 && s.At(SlotErrorType) == nil || s.span.Kind() != ptrace.SpanKindClient || s.span.Status().Code() != ptrace.StatusCodeError {
		return
	}
	operation, model, _ := strings.Cut(s.span.Name(), " ")
	if model != "" && AsksModel(operation) && !strings.Contains(model, " ") {
		s.SetText(SlotGenAIOperationName, operation)
		s.SetText(SlotGenAIRequestModel, model)
	}
}

// takeWeak makes facts of the attributes whose rules are chosen.
func (s *modelSpan) takeWeak(chosen func(*generalRule) bool) {
	for i := range s.general {
		c := &s.general[i]
		if of := c.of; !of.Holds && chosen(of) {
			if of.slot == SlotGenAIRequestModel && c.ofAnswer {
				of = generalRules["responsemodel"]
			}
			of.take(s.Facts, c.value)
		}
	}
}

func (s *modelSpan) countsTokens() bool {
	return s.At(SlotGenAIInputTokens) != nil || s.At(SlotGenAIOutputTokens) != nil
}

// namesModel reports whether the span names a model, by a table or by a general rule.
func (s *modelSpan) namesModel() bool {
	if s.At(SlotGenAIRequestModel) != nil || s.At(SlotGenAIResponseModel) != nil {
		return true
	}
	return slices.ContainsFunc(s.general, func(c generalCandidate) bool {
		ofModel := c.of.slot == SlotGenAIRequestModel || c.of.slot == SlotGenAIResponseModel
		return ofModel && (c.of.reads == nil || translate(&c.of.rule, c.value) != "")
	})
}

// isOf reports whether a word that says what the span is fulfils a condition.
func (s *modelSpan) isOf(condition func(kind string) bool) bool {
	return slices.ContainsFunc(s.general, func(c generalCandidate) bool {
		return c.of.slot == SlotGenAIOperationName && c.value.Type() == pcommon.ValueTypeStr && condition(c.value.Str())
	})
}
