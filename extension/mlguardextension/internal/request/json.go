package request

// JSON checks an OTLP/JSON export request by its brackets outside of strings.
// An array has three brackets a level, a map four.
type JSON struct {
	limits   Limits
	exceeded string

	brackets, objects int
	memory            int64
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
	j.memory += int64(len(part))
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
		case b == ',':
			j.memory += memoryOfElement
		case b == 'n': // null, of which the decoder makes an empty message
			j.object()
		}
	}
}

func (j *JSON) open(b byte) {
	if j.brackets++; j.brackets > j.limits.Depth*bracketsPerLevel+bracketsAround {
		j.exceeded = LimitDepth
	}
	if b == '{' {
		j.object()
	}
}

func (j *JSON) object() {
	j.memory += memoryOfAny
	if j.objects++; j.objects > j.limits.Messages {
		j.exceeded = LimitMessages
	}
}

// Memory returns how many bytes the decoder keeps for what was read, at most.
func (j *JSON) Memory() int64 { return j.memory }

// Exceeded returns the limit that the request exceeds so far, or "".
func (j *JSON) Exceeded() string { return j.exceeded }
