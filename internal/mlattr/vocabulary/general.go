package vocabulary

import (
	"maps"
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
// first.

// rankGeneral is the rank of the general rules: after the tables.
const rankGeneral = 1 << 19

// maxWord is the longest word that is looked up, in bytes.
const maxWord = 32

// generalRule is what a word says.
type generalRule struct {
	rule
	// counts is true for a number of tokens. A part of one, such as that of audio, has
	// the same word, behind a word for the part.
	counts bool
	// weak is true for a word that other programs use, too. It holds on the span of a
	// request or an operation of a model.
	weak bool
	// address is true for the address that an HTTP client asks.
	address bool
	// holds is true for the output of an operation, which may state its usage as JSON, and
	// usage for the usage itself.
	holds, usage bool
}

// generalRules are the rules by their words.
var generalRules = func() map[string]*generalRule {
	rules := make(map[string]*generalRule)
	add := func(r generalRule, canonical string, words ...string) {
		r.canonical, r.slot, r.where = canonical, SlotOf(canonical), onSpan
		r.rank += rankGeneral
		if r.kind == 0 {
			r.kind = kinds[canonical]
		}
		r.readOnly = readOnly(canonical, r.kind)
		for _, word := range words {
			rules[word] = &r
		}
	}
	count, weak := generalRule{counts: true}, generalRule{weak: true}
	add(count, mlattr.GenAIInputTokens, "inputtokens", "prompttokens", "inputtokencount", "prompttokencount",
		"tokencountprompt", "tokencountinput", "usagetokens")
	add(count, mlattr.GenAIOutputTokens, "outputtokens", "completiontokens", "outputtokencount", "completiontokencount", "candidatestokencount",
		"tokencountcompletion", "tokencountoutput")
	add(count, mlattr.TotalTokens, "totaltokens", "totaltokencount", "tokencounttotal")
	add(generalRule{}, mlattr.GenAICacheReadTokens, "cachereadinputtokens", "cachedinputtokens", "inputcachedtokens", "cachedtokens",
		"cachereadtokens", "cachedcontenttokencount", "cachereadinputtokencount", "promptcachehittokens", "promptdetailscacheread")
	add(generalRule{}, mlattr.GenAICacheCreationTokens, "cachecreationinputtokens", "cachewriteinputtokens", "cachewritetokens",
		"cachecreationtokens", "cachewriteinputtokencount", "promptdetailscachewrite")
	add(generalRule{}, mlattr.GenAIReasoningTokens, "reasoningtokens", "outputreasoningtokens", "thinkingtokens", "thoughtstokencount",
		"completiondetailsreasoning")
	add(weak, mlattr.GenAIRequestModel, "model", "modelname", "modelid", "requestmodel")
	add(generalRule{weak: true, rule: rule{reads: mlattr.JSONModel}}, mlattr.GenAIRequestModel, "invocationparameters", "modelparameters")
	add(weak, mlattr.GenAIResponseModel, "responsemodel")
	add(weak, mlattr.GenAIResponseID, "responseid", "completionid")
	add(weak, mlattr.GenAIFinishReasons, "finishreason", "finishreasons", "stopreason")
	add(weak, mlattr.GenAIStream, "isstreaming", "streaming", "isstream", "stream")
	add(weak, mlattr.GenAIToolName, "toolname")
	add(weak, mlattr.SessionID, "sessionid", "conversationid", "threadid")
	add(generalRule{weak: true, rule: rule{kind: table.KindSecret}}, mlattr.User, "userid", "enduserid")
	add(generalRule{}, mlattr.GenAITimeToFirstChunk, "timetofirsttoken", "timetofirstchunk")
	add(generalRule{rule: rule{factor: 1e-3}}, mlattr.GenAITimeToFirstChunk,
		"timetofirsttokenms", "timetofirstchunkms", "mstofirsttoken", "mstofirstchunk", "ttftms")
	add(generalRule{}, mlattr.FirstTokenAt, "completionstarttime", "firsttokentime")
	add(generalRule{weak: true, rule: rule{reads: operationOf}}, mlattr.GenAIOperationName,
		kindWords...)
	add(generalRule{weak: true, rule: rule{reads: mlattr.StatusIn}}, mlattr.ErrorType, "statusmessage", "errormessage", "errstr")
	add(generalRule{weak: true, rule: rule{reads: failedLevel, rank: 1}}, mlattr.ErrorType, "level")
	add(weak, mlattr.HTTPResendCount, "retryattempts")
	add(generalRule{holds: true}, "", "output", "outputs", "spanoutputs", "response", "result", "outputvalue")
	add(generalRule{holds: true, usage: true}, "", "usage", "usagedetails", "usagemetadata", "tokenusage")
	add(generalRule{address: true}, "", "urlfull", "urlpath", "httpurl", "httptarget")
	return rules
}()

// GeneralRule says which words of keys have a canonical meaning in any client's telemetry.
type GeneralRule struct {
	// Canonical is the attribute, and Words are the words, sorted.
	Canonical string
	Words     []string
	// Weak is true for words that hold only on spans of models.
	Weak bool
}

// General returns the general rules, for documentation, sorted by attribute.
func General() (rules []GeneralRule) {
	for _, word := range slices.Sorted(maps.Keys(generalRules)) {
		of := generalRules[word]
		if of.canonical == "" {
			continue
		}
		at := slices.IndexFunc(rules, func(r GeneralRule) bool { return r.Canonical == of.canonical })
		if at < 0 {
			at, rules = len(rules), append(rules, GeneralRule{Canonical: of.canonical, Weak: of.weak})
		}
		rules[at].Words = append(rules[at].Words, word)
	}
	slices.SortFunc(rules, func(x, y GeneralRule) int { return strings.Compare(x.Canonical, y.Canonical) })
	return rules
}

// kindWords are the words of keys that say what a span is.
var kindWords = []string{"spankind", "spantype", "requesttype", "runtype", "runkind", "operationtype", "observationtype"}

// wordTable finds rules by words that are hashed from their ends, so that one pass over
// the end of a key finds both its last word and its last two.
type wordTable struct {
	// ends has a bit for the last three letters of each word: most keys cost no more.
	ends [1 << 10]uint32
	// first has the index in entries, plus one, of the first word of each hash.
	first   [1 << wordBits]uint16
	entries []wordEntry
}

type wordEntry struct {
	word string
	hash uint32
	next uint16 // as in first
	of   *generalRule
}

const (
	wordBits = 9
	// The basis and the prime of FNV-1a.
	hashBasis, hashPrime = 2166136261, 16777619
)

var words = func() *wordTable {
	t := new(wordTable)
	for word, of := range generalRules {
		hash := uint32(hashBasis)
		for i := len(word) - 1; i >= 0; i-- {
			hash = (hash ^ uint32(word[i])) * hashPrime
		}
		n := len(word)
		t.ends[endOf(word[n-3], word[n-2])] |= 1 << (word[n-1] & 31)
		slot := hash >> (32 - wordBits)
		t.entries = append(t.entries, wordEntry{word, hash, t.first[slot], of})
		t.first[slot] = uint16(len(t.entries)) // #nosec G115 -- a hundred words
	}
	return t
}()

// endOf mixes two letters, in any case.
func endOf(x, y byte) int { return int(x&31)<<5 | int(y&31) }

// mayEnd reports whether a key may end in a word. The third letter from its end may be a
// separator, as in session.id.
func (t *wordTable) mayEnd(key string) bool {
	n := len(key)
	if n < 4 {
		return false
	}
	third := key[n-3]
	return third < 'A' || third == '_' || t.ends[endOf(third, key[n-2])]&(1<<(key[n-1]&31)) != 0
}

// find returns the rule of a word by its hash, or nil.
func (t *wordTable) find(hash uint32, text string) *generalRule {
	for i := t.first[hash>>(32-wordBits)]; i != 0; i = t.entries[i-1].next {
		entry := &t.entries[i-1]
		var word [maxWord]byte
		if entry.hash == hash && entry.word == string(fold(text, word[:0])) {
			return entry.of
		}
	}
	return nil
}

// operationWords are words for what a span does, in small letters and without separators.
var operationWords = map[string]string{
	"llm": mlattr.OperationChat, "chat": mlattr.OperationChat, "chatmodel": mlattr.OperationChat, "chatcompletion": mlattr.OperationChat,
	"generation": mlattr.OperationChat, "modelinference": mlattr.OperationChat, "llmcall": mlattr.OperationChat,
	"completion": mlattr.OperationTextCompletion, "textcompletion": mlattr.OperationTextCompletion,
	"generatecontent": mlattr.OperationGenerateContent,
	"embedding":       mlattr.OperationEmbeddings, "embeddings": mlattr.OperationEmbeddings,
	"tool": mlattr.OperationExecuteTool, "toolcall": mlattr.OperationExecuteTool,
	"agent": mlattr.OperationInvokeAgent, "agentrun": mlattr.OperationInvokeAgent,
}

func operationOf(text string) string {
	var word [maxWord]byte
	return operationWords[string(fold(strings.Trim(text, `"`), word[:0]))]
}

// isStep reports whether a word for what a span is says that it is a step of a program, and
// no request, whatever else the span states.
func isStep(kind string) bool {
	switch strings.ToLower(kind) {
	case "chain", "prompt", "parser", "retriever":
		return true
	default:
		return false
	}
}

// asksByItself reports whether a word for what a span is means a request to a model in
// every program.
func asksByItself(kind string) bool {
	var word [maxWord]byte
	switch string(fold(strings.Trim(kind, `"`), word[:0])) {
	case "llm", "chatmodel", "llmcall", "modelinference":
		return true
	default:
		return false
	}
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
		c := text[i]
		switch c {
		case '_', '-', ' ', '.', ':', '/':
			continue
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if len(to) == cap(to) {
			return to[:0]
		}
		to = append(to, c)
	}
	return to
}

// generalOf returns the rule of a key that no table lists, by its last two words or by
// its last, or nil. before is what the key says before them.
func generalOf(key string) (of *generalRule, before string) {
	if !words.mayEnd(key) {
		return nil, ""
	}
	hash, length, second := uint32(hashBasis), 0, false
	for i := len(key) - 1; ; i-- {
		if i < 0 || key[i] == '.' || key[i] == ':' || key[i] == '/' {
			if found := words.find(hash, key[i+1:]); found != nil {
				of, before = found, key[:max(i, 0)]
			}
			if second || i < 0 {
				return of, before
			}
			second = true
			continue
		}
		c := key[i]
		if c == '_' || c == '-' || c == ' ' {
			continue
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if length++; length > maxWord {
			return of, before
		}
		hash = (hash ^ uint32(c)) * hashPrime
	}
}

// ofDevice reports whether the words before a model say that it is a machine's.
func ofDevice(before string) bool { return strings.HasSuffix(before, "device") }

// ofPart reports whether the words before a number of tokens say that it is a part of
// another, or the sum of several requests, or no use at all.
func ofPart(before string) bool {
	for _, part := range [...]string{"detail", "cache", "audio", "image", "reasoning", "aggregat", "limit", "budget", "cumulative"} {
		if strings.Contains(before, part) {
			return true
		}
	}
	return before == "max" || strings.HasSuffix(before, ".max")
}

// collectGeneral reads an attribute by the general rules.
func (f *Facts) collectGeneral(key string, value pcommon.Value) {
	of, before := generalOf(key)
	switch {
	case of == nil:
	case of.address:
		f.asksAPI = f.asksAPI || value.Type() == pcommon.ValueTypeStr && isModelAPI(value.Str())
	case of.weak || of.holds:
		if len(f.general) < maxGeneral && !ofDevice(before) {
			f.general = append(f.general, generalCandidate{of, value, strings.Contains(before, "response")})
		}
	case !of.counts && !strings.Contains(before, "aggregat") || of.counts && !ofPart(before):
		f.takeGeneral(of, value)
	}
}

// apiPaths are ends of the paths of APIs of models that no other API has. The same
// paths of others need the host, too.
var apiPaths = [...]string{"/chat/completions", "/v1/completions", "/v1/embeddings", ":generateContent", ":streamGenerateContent", ":batchEmbedContents"}

var apiHosts = [...]struct{ host, path string }{
	{"api.openai.com", "/responses"}, {"openai.azure.com", "/responses"}, {"api.anthropic.com", "/messages"},
	{"api.cohere.", "/chat"}, {"bedrock-runtime.", "/converse"}, {"bedrock-runtime.", "/converse-stream"},
	{"bedrock-runtime.", "/invoke"}, {"bedrock-runtime.", "/invoke-with-response-stream"}, {":11434", "/api/chat"}, {":11434", "/api/generate"},
}

// isModelAPI reports whether an address, or its path, is that of a request to a model.
func isModelAPI(address string) bool {
	address, _, _ = strings.Cut(address, "?")
	for _, path := range apiPaths {
		if strings.HasSuffix(address, path) {
			return true
		}
	}
	for _, api := range apiHosts {
		if strings.HasSuffix(address, api.path) && strings.Contains(address, api.host) {
			return true
		}
	}
	return false
}

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

// takeGeneral makes a fact of an attribute. A value that cannot be read is none, nor is a
// word for none.
func (f *Facts) takeGeneral(of *generalRule, value pcommon.Value) {
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
	f.take(&of.rule, value, "")
}

// settleGeneral makes facts of the attributes that wait for what else the span says, and
// finds the usage of a request that states it as JSON or in an event.
func (f *Facts) settleGeneral(span ptrace.Span) {
	operation := f.TextAt(slotGenAIOperation)
	if operation == "" {
		if len(f.general) == 0 && span.Events().Len() == 0 && !f.countsTokens() {
			return
		}
		if f.countsTokens() || f.namesModel() || f.isOf(asksByItself) {
			f.takeWeak(func(of *generalRule) bool { return of.slot == slotGenAIOperation })
		}
		if operation = f.TextAt(slotGenAIOperation); operation == "" && !f.countsTokens() {
			if !f.asksInEvent(span) {
				return
			}
			operation = f.TextAt(slotGenAIOperation)
		}
	}
	asks := AsksModel(operation)
	if asks && f.isOf(isStep) {
		f.SetBool(slotRequestCounted, false)
	}
	f.takeWeak(func(of *generalRule) bool {
		switch of.slot {
		case slotErrorType:
			return asks
		case slotToolName:
			return operation == mlattr.OperationExecuteTool
		default:
			return true
		}
	})
	if !asks || f.countsTokens() {
		return
	}
	for i := range f.general {
		if c := &f.general[i]; c.of.holds {
			f.readUsage(c.value, c.of.usage)
		}
	}
	if !f.countsTokens() {
		f.readEvents(span)
	}
}

// takeWeak makes facts of the attributes whose rules are chosen.
func (f *Facts) takeWeak(chosen func(*generalRule) bool) {
	for i := range f.general {
		c := &f.general[i]
		if of := c.of; !of.holds && chosen(of) {
			if of.slot == slotRequested && c.ofAnswer {
				of = generalRules["responsemodel"]
			}
			f.takeGeneral(of, c.value)
		}
	}
}

func (f *Facts) countsTokens() bool { return f.At(slotInput) != nil || f.At(slotOutput) != nil }

// namesModel reports whether the span names a model, by a table or by a general rule.
func (f *Facts) namesModel() bool {
	if f.At(slotRequested) != nil || f.At(slotAnswered) != nil {
		return true
	}
	for i := range f.general {
		of := f.general[i].of
		if (of.slot == slotRequested || of.slot == slotAnswered) && (of.reads == nil || translate(&of.rule, f.general[i].value) != "") {
			return true
		}
	}
	return false
}

// isOf reports whether a word that says what the span is fulfils a condition.
func (f *Facts) isOf(condition func(kind string) bool) bool {
	for i := range f.general {
		c := &f.general[i]
		if c.of.slot == slotGenAIOperation && c.value.Type() == pcommon.ValueTypeStr && condition(c.value.Str()) {
			return true
		}
	}
	return false
}
