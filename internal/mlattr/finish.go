package mlattr

import (
	"strings"
)

// CutByLength reports whether a finish reason, in any provider's words and in
// any case, says that an answer was cut at a limit of tokens. It may be a member of
// an enumeration as Python prints it: FinishReason.LENGTH.
func CutByLength(reason string) bool {
	reason = reason[strings.LastIndexByte(reason, '.')+1:]
	for _, known := range cutReasons {
		if strings.EqualFold(reason, known) {
			return true
		}
	}
	return false
}

// cutReasons are the words of the APIs of models: the first is OpenAI's and that
// of the conventions' examples, the next are those of Anthropic, Gemini and
// Bedrock, and of Mistral.
var cutReasons = [...]string{"length", "max_tokens", "model_context_window_exceeded", "max_output_tokens", "model_length"}
