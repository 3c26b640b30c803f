package correlate

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
