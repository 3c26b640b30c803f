package mlattr

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxTexts bounds how many elements of a list of labels are read. A request has
// one finish reason for each of its answers.
const maxTexts = 16

// readTexts reads KindTexts.
func readTexts(v pcommon.Value) (text string, ok bool) {
	if v.Type() != pcommon.ValueTypeSlice {
		return ReadText(v)
	}
	list := v.Slice()
	for i := range min(list.Len(), maxTexts) {
		element, readable := ReadText(list.At(i))
		if readable && (!ok || CutByLength(element)) {
			text, ok = element, true
			if CutByLength(element) {
				break
			}
		}
	}
	return text, ok
}

// CutByLength reports whether a finish reason, in any provider's words and in
// any case, says that an answer was cut at a limit of tokens.
func CutByLength(reason string) bool {
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
