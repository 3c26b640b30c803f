package mlattr

import (
	"encoding/json"
	"strings"
)

// MaxJSON is the longest text that is parsed as JSON, in bytes. A token usage
// has a dozen numbers.
const MaxJSON = 2048

// JSONText returns the text that a client wrote as a JSON string. A text
// without quotes is returned as it is.
func JSONText(text string) string {
	if len(text) > MaxJSON || !strings.HasPrefix(text, `"`) {
		return text
	}
	var plain string
	if json.Unmarshal([]byte(text), &plain) != nil {
		return ""
	}
	return plain
}

// maxParameters is how much of the parameters of a request is searched, in bytes.
const maxParameters = 1024

// JSONModel returns the model of a request whose parameters are a JSON object, or
// "". It finds the first member of that name that is a text, on the first level,
// and allocates nothing. A name with an escape in it is no model's.
func JSONModel(text string) string { return jsonModel(text, maxParameters, 1) }

// maxAnswered is how much of an answer is searched for the model, in bytes.
const maxAnswered = 4096

// JSONAnsweredModel is JSONModel for an answer, which may name the model on any of the
// first five levels.
func JSONAnsweredModel(text string) string { return jsonModel(text, maxAnswered, 5) }

func jsonModel(text string, most, levels int) string {
	text = text[:min(len(text), most)]
	for depth, at := 0, 0; at < len(text); at++ {
		switch text[at] {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case '"':
			value, rest := cutText(text[at+1:])
			at = len(text) - len(rest) - 1
			if depth < 1 || depth > levels || value != "model" {
				continue
			}
			rest, member := strings.CutPrefix(strings.TrimLeft(rest, " "), ":")
			rest, quoted := strings.CutPrefix(strings.TrimLeft(rest, " "), `"`)
			if !member || !quoted {
				continue
			}
			if model, after := cutText(rest); after != "" && !strings.Contains(model, `\`) {
				return model
			}
			return ""
		}
	}
	return ""
}

// cutText returns a JSON text up to its closing quote, and what follows. The rest
// is empty if the text does not end.
func cutText(text string) (value, rest string) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}
