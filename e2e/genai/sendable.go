package genai

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// What a client sends says less than the server's log. Sendable computes from the spans
// alone, without the vocabulary, what anybody could know: a span is that of a request if
// it lasts while the server is asked and names the model, and says how many tokens were
// used if their number is in it, in whatever attribute, event or text.

// Sendable returns the account that can be known from the spans of a recording.
func Sendable(r *Recording, requests []ptrace.Traces) (a Account) {
	spans := readSpans(requests)
	used := make(map[*sent]bool)
	for _, call := range r.Served {
		of := spanOf(spans, &call, used)
		if of == nil {
			continue
		}
		if !used[of] {
			used[of] = true
			a.Requests++
			if of.failed() {
				a.Errors++
				a.Failures++
			}
		}
		for _, n := range [...]struct {
			served int64
			sum    *int64
			cached bool
		}{{call.Input, &a.Input, true}, {call.Output, &a.Output, false}} {
			if n.served > 0 && slices.ContainsFunc(spans, func(s *sent) bool { return s.near(&call) && s.states(n.served, call.Input+call.Output, n.cached) }) {
				*n.sum += n.served
			}
		}
	}
	return a
}

// sent is a span as a text and the numbers of tokens in it.
type sent struct {
	ptrace.Span
	// text has everything that the span says.
	text string
	// tokens are numbers of tokens, totals those of input and output together, and caches
	// those of caches, which are among tokens too.
	tokens, totals, caches map[int64]bool
}

func readSpans(requests []ptrace.Traces) (spans []*sent) {
	for _, td := range requests {
		for _, rs := range td.ResourceSpans().All() {
			for _, ss := range rs.ScopeSpans().All() {
				for _, span := range ss.Spans().All() {
					s := &sent{Span: span, tokens: make(map[int64]bool), totals: make(map[int64]bool), caches: make(map[int64]bool)}
					s.add(span.Name(), span.Attributes())
					for _, event := range span.Events().All() {
						s.add(event.Name(), event.Attributes())
					}
					spans = append(spans, s)
				}
			}
		}
	}
	return spans
}

// add adds a name and attributes to what the span says.
func (s *sent) add(name string, attrs pcommon.Map) {
	text, err := json.Marshal(attrs.AsRaw())
	if err != nil {
		panic(err) // a recording has no NaN
	}
	// A text may be JSON, of which one level is read.
	plain := strings.ReplaceAll(string(text), `\"`, `"`)
	s.text += name + " " + plain + "\n"
	for _, found := range tokenCount.FindAllStringSubmatch(plain, -1) {
		n, err := strconv.ParseInt(found[2], 10, 64)
		if err != nil {
			continue
		}
		if strings.Contains(strings.ToLower(found[1]), "total") {
			s.totals[n] = true
			continue
		}
		s.tokens[n] = true
		if n > 0 && strings.Contains(strings.ToLower(found[1]), "cache") {
			s.caches[n] = true
		}
	}
}

// tokenCount finds numbers whose names speak of tokens or usage.
var tokenCount = regexp.MustCompile(`(?i)"([^"]*(?:token|input|output|total|cache|reasoning|thought)[^"]*)"\s*:\s*"?(\d+)\b`)

// lasts reports whether the span lasts while the server is asked. Some clients end the
// span of a stream before they ask.
func (s *sent) lasts(call *Served, early, late time.Duration) bool {
	at := time.Unix(0, int64(call.At*1e9))
	return !at.Before(s.StartTimestamp().AsTime().Add(-early)) && !at.After(s.EndTimestamp().AsTime().Add(late))
}

// near reports whether the span lasts about when the server is asked: a report of the
// usage comes after the answer.
func (s *sent) near(call *Served) bool {
	at := time.Unix(0, int64(call.At*1e9))
	return s.StartTimestamp().AsTime().Before(at.Add(3*time.Second)) && s.EndTimestamp().AsTime().After(at.Add(-time.Second))
}

// states reports whether the span states a number of tokens, or parts of it: the tokens of
// caches and others, if they may be, or any where it states the total too.
func (s *sent) states(n, total int64, cached bool) bool {
	if s.tokens[n] {
		return true
	}
	for read := range s.caches {
		if !cached {
			break
		}
		for written := range s.caches {
			if s.tokens[n-read] || s.tokens[n-read-written] {
				return true
			}
		}
	}
	for part := range s.tokens {
		if s.tokens[n-part] && s.totals[total] {
			return true
		}
	}
	return false
}

// failed reports whether the span says in any way that it failed.
func (s *sent) failed() bool {
	return s.Status().Code() == ptrace.StatusCodeError || failure.MatchString(s.text)
}

var failure = regexp.MustCompile(`"(?:exception\.type|error\.type)":|level":"ERROR"|finish_reasons?":\[?"?\[?"error"|"state":"error"`)

// asks finds what a span says that is a request by the conventions.
var asks = regexp.MustCompile(`"gen_ai\.operation\.name":"(?:chat|text_completion|generate_content|embeddings)"`)

// spanOf returns the span of a request: the shortest one that lasts while the server is
// asked and names the model or is a request by the conventions. One of another request
// is taken only if there is no other: the client asks again within it.
func spanOf(spans []*sent, call *Served, used map[*sent]bool) *sent {
	for _, slack := range [...]struct{ early, late time.Duration }{
		{}, {5 * time.Millisecond, 5 * time.Millisecond}, {time.Second, time.Second}, {0, time.Second},
	} {
		for _, again := range []bool{false, true} {
			if slack.late == time.Second && !call.Stream {
				return nil
			}
			var of *sent
			for _, s := range spans {
				// A span that begins when its stream does says how many tokens it has.
				if slack.early == time.Second && !s.states(call.Input, call.Input+call.Output, true) {
					continue
				}
				if s.lasts(call, slack.early, slack.late) && (strings.Contains(s.text, call.Model) || asks.MatchString(s.text)) && (again || !used[s]) && (of == nil || length(s) < length(of)) {
					of = s
				}
			}
			if of != nil && (again || !slices.ContainsFunc(spans, func(s *sent) bool { return used[s] && s.lasts(call, 0, 0) && s.below(of, spans) })) {
				return of
			}
		}
	}
	return nil
}

// below reports whether the span is below another one.
func (s *sent) below(other *sent, spans []*sent) bool {
	for s.ParentSpanID() != other.SpanID() || s.TraceID() != other.TraceID() {
		at := slices.IndexFunc(spans, func(above *sent) bool { return above.SpanID() == s.ParentSpanID() && above.TraceID() == s.TraceID() })
		if at < 0 {
			return false
		}
		s = spans[at]
	}
	return true
}

func length(s *sent) pcommon.Timestamp { return s.EndTimestamp() - s.StartTimestamp() }
