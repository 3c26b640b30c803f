package correlate

import (
	"slices"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// origin is where an inherited key came from.
type origin uint8

const (
	notInherited origin = iota
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

// The indexes of the phase and of the epoch in origins, after the keys.
const (
	originPhase = keyCount + iota
	originEpoch
	originCount
)

// origins has the origin of each key, of the phase and of the epoch.
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

// maxSources bounds Sources. A dozen texts are usual, but a client that writes
// the attribute itself could cause millions.
const maxSources = 256

// Sources remembers the texts of ml.correlation.source, so that each is made
// once. The zero value is ready for use. It is not safe for concurrent use.
type Sources map[origins]string

// text returns the value of ml.correlation.source, such as
// "session=trace,phase=parent".
func (m *Sources) text(o origins) string {
	if *m == nil || len(*m) >= maxSources {
		*m = make(Sources)
	}
	return shared.Entry(*m, o, o.String)
}

// String returns the value of ml.correlation.source, or "" if nothing was
// inherited.
func (o origins) String() string {
	var parts []string
	for k, from := range o {
		if from != notInherited && shortNames[k] != "" {
			parts = append(parts, shortNames[k]+"="+originNames[from])
		}
	}
	return strings.Join(parts, ",")
}

// stated is which keys a span or log record has.
type stated struct {
	// present marks the keys whose attribute it has, its own or not.
	present [keyCount]bool
	// inherited is what an ml_enrich before this one let it inherit, and later also
	// what this one does.
	inherited origins
	// foreign is true if another component wrote ml.correlation.source.
	foreign bool
}

// readStated reads which keys the facts of a span or log record have. It adds to them the
// run that follows from the training run.
func readStated(f *vocabulary.Facts) (s stated) {
	if source := f.At(vocabulary.SlotCorrelationSource); source != nil {
		origins, ok := parseOrigins(source.Text)
		s.inherited, s.foreign = origins, !ok
	}
	settleTrainingRun(f, &s.inherited)
	for k := range keyNames {
		s.present[k] = f.At(keySlots[k]) != nil
	}
	return s
}

// parseOrigins reads what String wrote, and returns false for any other text.
func parseOrigins(text string) (origins, bool) {
	var o origins
	for part := range strings.SplitSeq(text, ",") {
		name, from, _ := strings.Cut(part, "=")
		k, source := slices.Index(shortNames[:], name), slices.Index(originNames[:], from)
		if name == "" || from == "" || k < 0 || source < 0 || o[k] != notInherited {
			return origins{}, false
		}
		o[k] = origin(source)
	}
	if o[keyRun] != notInherited {
		o[keyInferred] = o[keyRun]
	}
	return o, true
}
