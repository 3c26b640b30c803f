package request

// JSON checks an OTLP/JSON export request by its brackets outside of strings.
// An array has three brackets a level, a map four.
type JSON struct {
	limits   Limits
	exceeded string

	brackets, objects int
	text, escaped     bool
}

const (
	bracketsPerLevel = 4
	// bracketsAround is the largest number of brackets around a value, that of
	// an exemplar's attribute, plus a margin for later versions of OTLP.
	bracketsAround = 20
)

// Write reads the next part of the request.
func (j *JSON) Write(part []byte) {
	if j.exceeded != "" {
		return
	}
	for _, b := range part {
		switch {
		case j.escaped:
			j.escaped = false
		case j.text:
			j.escaped, j.text = b == '\\', b != '"'
		case b == '"':
			j.text = true
		case b == '{' || b == '[':
			j.open(b)
		case b == '}' || b == ']':
			j.brackets--
		}
	}
}

func (j *JSON) open(b byte) {
	if j.brackets++; j.brackets > j.limits.Depth*bracketsPerLevel+bracketsAround {
		j.exceeded = LimitDepth
	}
	if b == '{' {
		if j.objects++; j.objects > j.limits.Messages {
			j.exceeded = LimitMessages
		}
	}
}

// Exceeded returns the limit that the request exceeds so far, or "".
func (j *JSON) Exceeded() string { return j.exceeded }
