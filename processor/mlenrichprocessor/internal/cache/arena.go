package cache

// Arena is memory for byte strings of any length. The zero value is empty and
// ready for use. It grows to the most that was needed at once, and gives
// nothing back. It is not safe for concurrent use.
type Arena struct {
	pages [][]block
	// free is the first unused block, or noBlock.
	free uint32
}

// block is a part of a byte string: as many bytes as the processor reads at
// once.
type block struct {
	next uint32
	data [blockBytes]byte
}

const (
	blockBytes = 60
	// pageBlocks is the number of blocks in a page of 64 KiB.
	pageBlocks = 1024
	// noBlock is the index that means "no block". The first block stays unused.
	noBlock uint32 = 0
)

// Bytes is a byte string in an Arena. The zero value is empty.
type Bytes struct {
	first, last uint32
	size        uint32
}

func (a *Arena) block(at uint32) *block { return &a.pages[at/pageBlocks][at%pageBlocks] }

// Append adds data to the end of a byte string.
func (a *Arena) Append(to *Bytes, data []byte) {
	for len(data) > 0 {
		used := to.size % blockBytes
		if used == 0 {
			at := a.take()
			if to.first == noBlock {
				to.first = at
			} else {
				a.block(to.last).next = at
			}
			to.last = at
		}
		n := copy(a.block(to.last).data[used:], data)
		to.size += uint32(n)
		data = data[n:]
	}
}

// Read appends a copy of a byte string to a slice.
func (a *Arena) Read(to []byte, from Bytes) []byte {
	at := from.first
	for left := int(from.size); left > 0; left -= blockBytes {
		b := a.block(at)
		to = append(to, b.data[:min(left, blockBytes)]...)
		at = b.next
	}
	return to
}

// Free empties a byte string, whose memory is used again.
func (a *Arena) Free(b *Bytes) {
	if b.first != noBlock {
		a.block(b.last).next = a.free
		a.free = b.first
	}
	*b = Bytes{}
}

// take returns an unused block.
func (a *Arena) take() uint32 {
	if a.free == noBlock {
		first := uint32(len(a.pages) * pageBlocks)
		page := make([]block, pageBlocks)
		for i := range page {
			page[i].next = first + uint32(i) + 1
		}
		page[pageBlocks-1].next = noBlock
		a.pages, a.free = append(a.pages, page), max(first, 1)
	}
	at := a.free
	taken := a.block(at)
	a.free, taken.next = taken.next, noBlock
	return at
}
