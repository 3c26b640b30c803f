package mlenrichprocessor

// pieces is memory for what the store keeps of a trace or an id, which has no
// fixed size. It refers to nothing, as bounded, and for the same reason. It
// grows to what has been needed at once, which the limits of the store bound.
type pieces struct {
	pages [][]piece
	// free is the first piece that is not in use, or noPiece.
	free uint32
}

// piece is a part of a stretch. It has as many bytes as the processor reads at
// once.
type piece struct {
	next uint32
	data [pieceBytes]byte
}

const (
	pieceBytes = 60
	// pagePieces is how many pieces a page has: 64 KiB.
	pagePieces = 1024
	// noPiece is the place of nothing; the first piece is not used.
	noPiece uint32 = 0
)

// stretch is a number of bytes in pieces. The zero value is empty.
type stretch struct {
	first, last uint32
	size        uint32
}

func (p *pieces) piece(place uint32) *piece { return &p.pages[place/pagePieces][place%pagePieces] }

// add adds bytes to the end of a stretch.
func (p *pieces) add(s *stretch, data []byte) {
	for len(data) > 0 {
		used := s.size % pieceBytes
		if used == 0 {
			place := p.take()
			if s.first == noPiece {
				s.first = place
			} else {
				p.piece(s.last).next = place
			}
			s.last = place
		}
		n := copy(p.piece(s.last).data[used:], data)
		s.size += uint32(n)
		data = data[n:]
	}
}

// read appends a copy of a stretch to a slice.
func (p *pieces) read(to []byte, s stretch) []byte {
	place := s.first
	for left := int(s.size); left > 0; left -= pieceBytes {
		from := p.piece(place)
		to = append(to, from.data[:min(left, pieceBytes)]...)
		place = from.next
	}
	return to
}

// drop empties a stretch and gives its pieces back.
func (p *pieces) drop(s *stretch) {
	if s.first != noPiece {
		p.piece(s.last).next = p.free
		p.free = s.first
	}
	*s = stretch{}
}

// take returns a piece that is not in use.
func (p *pieces) take() uint32 {
	if p.free == noPiece {
		first := uint32(len(p.pages) * pagePieces)
		page := make([]piece, pagePieces)
		for i := range page {
			page[i].next = first + uint32(i) + 1
		}
		page[pagePieces-1].next = noPiece
		p.pages, p.free = append(p.pages, page), max(first, 1)
	}
	place := p.free
	taken := p.piece(place)
	p.free, taken.next = taken.next, noPiece
	return place
}
