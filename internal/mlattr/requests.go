package mlattr

import (
	"math"
	"slices"
	"strings"
)

// CutByLength reports whether a finish reason, in any provider's words and in
// any case, says that an answer was cut at a limit of tokens. It may be a member of
// an enumeration as Python prints it: FinishReason.LENGTH.
func CutByLength(reason string) bool { return isReason(reason, cutReasons[:]) }

// Withheld reports whether a finish reason says that a filter withheld an answer, or that
// the model refused one.
func Withheld(reason string) bool { return isReason(reason, withheldReasons[:]) }

func isReason(reason string, known []string) bool {
	reason = reason[strings.LastIndexByte(reason, '.')+1:]
	return slices.ContainsFunc(known, func(one string) bool { return strings.EqualFold(reason, one) })
}

// withheldReasons are the words of the APIs of models: OpenAI's, those of Anthropic and
// Bedrock, and those of Gemini.
var withheldReasons = [...]string{
	"content_filter", "refusal", "content_filtered", "guardrail_intervened",
	"safety", "recitation", "blocklist", "prohibited_content", "spii", "image_safety",
}

// cutReasons are the words of the APIs of models: the first is OpenAI's and that
// of the conventions' examples, the next are those of Anthropic, Gemini and
// Bedrock, and of Mistral.
var cutReasons = [...]string{"length", "max_tokens", "model_context_window_exceeded", "max_output_tokens", "model_length"}

// WholeInput returns how many input tokens a request had, including those that
// were read from a cache and written to one. input, read and creation are the
// counts that the producer reports. The conventions include cached tokens in
// input. A producer that reports more cached tokens than input leaves them out;
// otherwise input is returned. No count is negative. A sum that overflows is the
// largest int64.
func WholeInput(input, read, creation int64) int64 {
	cached := addCounts(read, creation)
	if cached <= input {
		return input
	}
	return addCounts(input, cached)
}

func addCounts(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
