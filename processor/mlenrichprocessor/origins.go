package mlenrichprocessor

import (
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// origin says where an inherited key came from.
type origin uint8

const (
	fromNowhere origin = iota
	fromSpan
	fromParent
	fromTrace
	fromRequest
	fromTrainingRun
	fromSamplingSession
	fromLink
	fromTime
	fromSession
)

var originNames = [...]string{
	fromSpan:            "span",
	fromParent:          "parent",
	fromTrace:           "trace",
	fromRequest:         "request",
	fromTrainingRun:     "training_run",
	fromSamplingSession: "sampling_session",
	fromLink:            "link",
	fromTime:            "time",
	fromSession:         "session",
}

// The places of the phase and of the epoch in origins, after the keys.
const (
	originPhase = keyCount + iota
	originEpoch
	originCount
)

// origins says of each key, of the phase and of the epoch where it was
// inherited from.
type origins [originCount]origin

// shortNames are the keys in ml.correlation.source. Whether a run is inferred
// comes with the run and is not named.
var shortNames = [originCount]string{
	keySession:         "session",
	keyConversation:    "conversation",
	keyRun:             "run",
	keyTrainingRun:     "training_run",
	keySamplingSession: "sampling_session",
	keyRequest:         "request",
	originPhase:        "phase",
	originEpoch:        "epoch",
}

// maxMarks is how many texts marks keeps. In practice a dozen occur; a client
// that makes up marks of its own could make there be millions.
const maxMarks = 256

// marks keeps the texts of origins, so that one that recurs is made once. The
// zero value is ready for use.
type marks map[origins]string

// text is the value of ml.correlation.source for origins of which at least one
// is known: "session=trace,phase=parent".
func (m *marks) text(o origins) string {
	if text, ok := (*m)[o]; ok {
		return text
	}
	if *m == nil {
		*m = make(marks)
	} else if len(*m) >= maxMarks {
		clear(*m)
	}
	text := o.String()
	(*m)[o] = text
	return text
}

// String is the value of ml.correlation.source. It is empty where nothing was
// inherited.
func (o origins) String() string {
	var b strings.Builder
	for k, from := range o {
		if from == fromNowhere || shortNames[k] == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(shortNames[k])
		b.WriteByte('=')
		b.WriteString(originNames[from])
	}
	return b.String()
}

// readOrigins reads ml.correlation.source, where an ml_enrich before this one
// has left it. It is foreign where somebody else wrote it.
func readOrigins(f *mlattr.Facts) (o origins, foreign bool) {
	mark := f.At(slotSource)
	if mark == nil {
		return origins{}, false
	}
	o, ok := parseOrigins(mark.Text)
	return o, !ok
}

// parseOrigins reads what String wrote. It returns false for anything else: a
// text by another hand says nothing that could be relied upon.
func parseOrigins(text string) (origins, bool) {
	var o origins
	for part := range strings.SplitSeq(text, ",") {
		name, from, _ := strings.Cut(part, "=")
		k, known := indexOf(shortNames[:], name)
		source, valid := indexOf(originNames[:], from)
		if !known || !valid || o[k] != fromNowhere {
			return origins{}, false
		}
		o[k] = origin(source)
	}
	if o[keyRun] != fromNowhere {
		o[keyInferred] = o[keyRun]
	}
	return o, true
}

func indexOf(names []string, name string) (int, bool) {
	for i, known := range names {
		if known == name && name != "" {
			return i, true
		}
	}
	return 0, false
}
