package correlate

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// The keys that spans of a trace share.
const (
	keySession = iota
	keyConversation
	keyRun
	keyTrainingRun
	keySamplingSession
	keyRequest
	keyInferred // textTrue if keyRun was inferred
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
	keySlots = func() (slots [keyCount]vocabulary.Slot) {
		for k, name := range keyNames {
			slots[k] = vocabulary.SlotOf(name)
		}
		return slots
	}()
)

// downOnly reports whether only the descendants of a span get the key: a trace
// may hold many requests.
func downOnly(key int) bool { return key == keyRequest }

// exclusive reports whether two values of the key split a trace. Then spans get
// keys from their ancestors only: two sessions in a trace make its one
// conversation ambiguous too.
func exclusive(key int) bool { return key == keySession || key == keyRun || key == keyTrainingRun }

// set is a value of each key, zero for none: texts in the store, and symbols in
// a batch.
type set[V comparable] [keyCount]V

// agreement is what several spans say about the keys: the values, and about
// which keys they disagree.
type agreement[V comparable] struct {
	values set[V]
	// disagree has a bit for each key.
	disagree byte
}

// agreed returns the values that every span may inherit.
func (a *agreement[V]) agreed() set[V] {
	values := a.values
	for k := range values {
		if a.disagree&(1<<k) == 0 {
			continue
		}
		if exclusive(k) {
			return set[V]{}
		}
		var none V
		values[k] = none
	}
	return values
}

// observe takes one span's keys in.
func (a *agreement[V]) observe(keys *set[V]) {
	var none V
	for k, value := range keys {
		switch {
		case value == none || a.values[k] == value:
		case a.values[k] == none:
			a.values[k] = value
		default:
			a.disagree |= 1 << k
		}
	}
}

// exchange makes an agreement of the store and one of a batch equal. The
// store's values win. It reports whether the store's has changed.
func exchange(stored *agreement[string], batch *agreement[symbol], texts *symbols) (changed bool) {
	before := *stored
	var said set[string]
	for k, value := range batch.values {
		said[k] = texts.text(value)
	}
	stored.observe(&said)
	stored.disagree |= batch.disagree
	for k, value := range stored.values {
		batch.values[k] = texts.of(k, value)
	}
	batch.disagree = stored.disagree
	return *stored != before
}

// symbol is the number of a text in a batch; 0 is the empty text. Keys are
// compared far more often than they are written, and most spans of a batch have
// the same ones.
type symbol uint32

// symbols numbers the texts of a batch. The zero value is ready for use.
type symbols struct {
	texts  []string // by symbol; the first is unused
	byText map[string]symbol
	// last is the last symbol of each key, and of the phase at originPhase: often
	// the next span's too.
	last [originCount]symbol
}

// of returns the symbol of a key's text.
func (s *symbols) of(key int, text string) symbol {
	if text == "" {
		return 0
	}
	if last := s.last[key]; last != 0 && s.texts[last] == text {
		return last
	}
	known, ok := s.byText[text]
	if !ok {
		if len(s.texts) == 0 {
			s.texts = append(s.texts, "")
		}
		known = symbol(len(s.texts))
		s.texts = append(s.texts, text)
		mlattr.Put(&s.byText, text, known)
	}
	s.last[key] = known
	return known
}

// text returns the text of a symbol.
func (s *symbols) text(of symbol) string {
	if of == 0 {
		return ""
	}
	return s.texts[of]
}

// reset forgets every text and keeps the memory.
func (s *symbols) reset() {
	clear(s.texts)
	clear(s.byText)
	s.texts, s.last = s.texts[:0], [originCount]symbol{}
}
