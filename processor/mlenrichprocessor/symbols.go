package mlenrichprocessor

// symbol stands for a text of one batch; zero stands for none. Keys are
// compared far more often than they are written, and most of a batch's spans
// have the same ones.
type symbol uint32

// textAnswer is the place of an answer's id among the keys of symbols.of.
const textAnswer = keyCount + 1

// symbols numbers the texts of a batch. The zero value is ready for use.
type symbols struct {
	texts  []string // by symbol; the first is unused
	byText map[string]symbol
	// last is the symbol that each key, at originPhase the phase and at
	// textAnswer the answer, had last: often the next span's too.
	last [textAnswer + 1]symbol
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
		if s.byText == nil {
			s.byText = make(map[string]symbol)
		}
		if len(s.texts) == 0 {
			s.texts = append(s.texts, "")
		}
		known = symbol(len(s.texts))
		s.texts = append(s.texts, text)
		s.byText[text] = known
	}
	s.last[key] = known
	return known
}

// text returns what a symbol stands for.
func (s *symbols) text(of symbol) string {
	if of == 0 {
		return ""
	}
	return s.texts[of]
}

// reset forgets every text.
func (s *symbols) reset() {
	clear(s.texts)
	clear(s.byText)
	s.texts, s.last = s.texts[:0], [textAnswer + 1]symbol{}
}
