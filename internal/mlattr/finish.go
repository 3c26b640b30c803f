package mlattr

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// maxTexts bounds how many elements of a list of labels are read. A request has
// one finish reason for each of its answers.
const maxTexts = 16

// readTexts reads KindTexts. The list may be text, as JSON.
func readTexts(v pcommon.Value) (text string, ok bool) {
	if v.Type() != pcommon.ValueTypeSlice {
		if text, ok = ReadText(v); ok && text[0] == '[' {
			return firstReason(text)
		}
		return text, ok
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

// firstReason returns the element of a list in JSON that readTexts chooses.
// Elements with escaped characters are no reasons.
func firstReason(list string) (text string, ok bool) {
	inside := false
	for element := range strings.SplitSeq(list, `"`) {
		if inside && element != "" && (!ok || CutByLength(element)) {
			text, ok = element, true
			if CutByLength(element) {
				break
			}
		}
		inside = !inside
	}
	return text, ok
}

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
