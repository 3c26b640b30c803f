package mlenrichprocessor

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr"

// The keys that spans of a trace share.
const (
	keySession = iota
	keyConversation
	keyRun
	keyTrainingRun
	keySamplingSession
	keyRequest
	keyInferred // textTrue where keyRun was inferred
	keyCount
)

// textTrue is the value of keyInferred.
const textTrue = "true"

// keyNames are the attributes of the keys, and keySlots their slots.
var (
	keyNames = [keyCount]string{
		keySession:         mlattr.SessionID,
		keyConversation:    mlattr.GenAIConversationID,
		keyRun:             mlattr.RunID,
		keyTrainingRun:     mlattr.TrainingRunID,
		keySamplingSession: mlattr.SamplingSessionID,
		keyRequest:         mlattr.RequestID,
		keyInferred:        mlattr.RunInferred,
	}
	keySlots = func() (slots [keyCount]mlattr.Slot) {
		for k, name := range keyNames {
			slots[k] = mlattr.SlotOf(name)
		}
		return slots
	}()
	slotPhase    = mlattr.SlotOf(mlattr.Phase)
	slotSource   = mlattr.SlotOf(mlattr.CorrelationSource)
	slotEpochEnd = mlattr.SlotOf(mlattr.EpochEnd)
	slotConflict = mlattr.SlotOf(mlattr.CorrelationConflict)
)

// downOnly says which keys a span gives to its descendants and to nobody
// else: a trace may hold many requests.
func downOnly(key int) bool { return key == keyRequest }

// exclusive says which keys, when two of them meet in a trace, split it: what
// is left is the chain of ancestors, for these and for the keys that depend
// on them. Two sessions in a trace make its one conversation doubtful too.
func exclusive(key int) bool {
	return key == keySession || key == keyRun || key == keyTrainingRun
}

// keySet is a value of each key as the store has it; empty is none.
type keySet [keyCount]string

// agreement is what several spans say about the keys, as the store has it:
// the values, and which keys they disagree about.
type agreement struct {
	values   keySet
	disagree [keyCount]bool
}

// agreed is the value that everybody may inherit, or "".
func (a *agreement) agreed(key int) string {
	if a.disagree[key] || split(&a.disagree) {
		return ""
	}
	return a.values[key]
}

// split says whether two sessions or runs meet.
func split(disagree *[keyCount]bool) bool {
	for k, differs := range disagree {
		if differs && exclusive(k) {
			return true
		}
	}
	return false
}

// symbolSet is a keySet in the symbols of a batch.
type symbolSet [keyCount]symbol

// symbolAgreement is an agreement in the symbols of a batch.
type symbolAgreement struct {
	values   symbolSet
	disagree [keyCount]bool
}

// observe takes one span's keys in.
func (a *symbolAgreement) observe(keys *symbolSet) {
	for k, value := range keys {
		switch {
		case value == 0 || a.values[k] == value:
		case a.values[k] == 0:
			a.values[k] = value
		default:
			a.disagree[k] = true
		}
	}
}

// exchange makes an agreement of the store and one of a batch the same: the
// store's values stand where it has any. It says whether the store's is another
// one now.
func (a *agreement) exchange(batch *symbolAgreement, texts *symbols) (changed bool) {
	for k := range a.values {
		have, said := a.values[k], batch.values[k]
		disagreed := a.disagree[k]
		a.disagree[k] = disagreed || batch.disagree[k]
		switch {
		case have == "" && said == 0:
		case have == "":
			a.values[k], changed = texts.text(said), true
		case said == 0:
			batch.values[k] = texts.of(k, have)
		case have != texts.text(said):
			a.disagree[k] = true
			batch.values[k] = texts.of(k, have)
		}
		batch.disagree[k] = a.disagree[k]
		changed = changed || a.disagree[k] != disagreed
	}
	return changed
}

// agreed are the values that everybody may inherit.
func (a *symbolAgreement) agreed() symbolSet {
	if split(&a.disagree) {
		return symbolSet{}
	}
	values := a.values
	for k, differs := range a.disagree {
		if differs {
			values[k] = 0
		}
	}
	return values
}
