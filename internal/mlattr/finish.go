package mlattr

import (
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
