package request

import (
	"encoding/binary"
	"math"
)

// state is what the next byte belongs to.
type state uint8

const (
	atTag state = iota
	atLength
	atNumber // a varint that is a value
	atBytes  // bytes that are passed over
	atEnd    // the decoder refuses what follows
)

// frame is a message that contains the next byte.
type frame struct {
	end     int64 // position behind its last byte
	message *message
}

// Protobuf checks a binary export request. It reads the request as pdata's
// decoder does, and ignores the rest where the decoder fails.
type Protobuf struct {
	limits   Limits
	exceeded string

	frames   []frame
	levels   int
	messages int
	memory   int64

	state  state
	at     int64  // position of the next byte
	number uint64 // what is read of a tag or a length
	shift  uint
	field  int32 // the field whose length is next
	skip   int64 // bytes to pass over
	groups int   // groups that are open: as in the decoder, the first value ends all

	first [32]frame
}

func newProtobuf(root *message, limits Limits) *Protobuf {
	p := &Protobuf{limits: limits}
	p.frames = append(p.first[:0], frame{math.MaxInt64, root})
	return p
}

// Write reads the next part of the request.
func (p *Protobuf) Write(part []byte) {
	for len(part) > 0 && p.state != atEnd {
		if p.state == atBytes {
			n := min(p.skip, int64(len(part)))
			part, p.skip, p.at = part[n:], p.skip-n, p.at+n
			if p.skip == 0 {
				p.next()
			}
			continue
		}
		if p.state == atTag && p.shift == 0 && p.groups == 0 {
			if part = p.fields(part); len(part) == 0 {
				return
			}
		}
		b := part[0]
		part = part[1:]
		p.at++
		p.number |= uint64(b&0x7f) << p.shift
		if b >= 0x80 {
			if p.shift += 7; p.shift >= 64 {
				p.state = atEnd
			}
			continue
		}
		number := p.number
		p.number, p.shift = 0, 0
		switch p.state {
		case atTag:
			p.tag(number)
		case atLength:
			p.length(number)
		default:
			p.next()
		}
	}
}

// fields reads fields as long as each is whole in part, has a tag of one byte, exceeds
// nothing and ends where it may. It returns the rest, which is read byte by byte.
func (p *Protobuf) fields(part []byte) []byte {
	top := p.frames[len(p.frames)-1]
	for len(part) > 1 && part[0] >= 1<<3 && part[0] < 0x80 {
		wire := part[0] & 7
		head, size := 1, 0 // bytes of tag, length and number, and those that follow
		var child *message
		switch wire {
		case 0, 2:
			number, n := uint64(part[1]), 1
			if number >= 0x80 {
				number, n = binary.Uvarint(part[1:])
			}
			if n <= 0 || wire == 2 && number > math.MaxInt32 {
				return part
			}
			if head += n; wire == 2 {
				size, child = int(number), top.message.child(int32(part[0]>>3)) // #nosec G115 -- checked above
			}
		case 1:
			size = 8
		case 5:
			size = 4
		default:
			return part
		}
		end := p.at + int64(head+size)
		nested := child == arrayValue || child == keyValueList
		opens := child != nil && child != other && child != text
		if end > top.end || child != nil && p.messages >= p.limits.Messages || nested && p.levels >= p.limits.Depth || !opens && head+size > len(part) {
			return part
		}
		switch {
		case child != nil:
			p.messages++
			p.memory += child.memory
		case top.message == buckets && wire == 0:
			p.memory += memoryOfCount
		case top.message == buckets && wire == 2:
			p.memory += memoryOfCount * int64(size)
		}
		if opens {
			if nested {
				p.levels++
			}
			top, size = frame{end, child}, 0
			p.frames = append(p.frames, top)
		}
		p.at += int64(head + size)
		if part = part[head+size:]; p.at >= top.end {
			p.next()
			top = p.frames[len(p.frames)-1]
		}
	}
	return part
}

// Memory returns how many bytes the decoder keeps for what was read.
func (p *Protobuf) Memory() int64 { return p.memory + p.at }

// Exceeded returns the limit that the request exceeds so far, or "".
func (p *Protobuf) Exceeded() string { return p.exceeded }

func (p *Protobuf) tag(number uint64) {
	// A larger number loses its upper bits in the decoder, too.
	p.field = int32(number >> 3)
	if p.field <= 0 {
		p.state = atEnd
		return
	}
	switch number & 7 {
	case 0:
		p.state, p.groups = atNumber, 0
		if p.frames[len(p.frames)-1].message == buckets {
			p.memory += memoryOfCount
		}
	case 1:
		p.pass(8)
	case 2:
		p.state = atLength
	case 3:
		p.groups++
	case 4:
		p.groups = max(p.groups-1, 0)
		p.next()
	case 5:
		p.pass(4)
	default:
		p.state = atEnd
	}
}

func (p *Protobuf) length(number uint64) {
	top := p.frames[len(p.frames)-1]
	if number > uint64(math.MaxInt64-p.at) {
		p.state = atEnd
		return
	}
	size := int64(number)
	child := top.message.child(p.field)
	if child == nil || p.groups > 0 || p.at+size > top.end {
		if top.message == buckets {
			p.memory += memoryOfCount * min(size, max(top.end-p.at, 0))
		}
		p.pass(size)
		return
	}
	if p.messages++; p.messages > p.limits.Messages {
		p.exceed(LimitMessages)
		return
	}
	p.memory += child.memory
	if child == other || child == text {
		p.pass(size)
		return
	}
	if child == arrayValue || child == keyValueList {
		if p.levels++; p.levels > p.limits.Depth {
			p.exceed(LimitDepth)
			return
		}
	}
	p.frames = append(p.frames, frame{p.at + size, child})
	p.next()
}

func (p *Protobuf) exceed(limit string) { p.exceeded, p.state = limit, atEnd }

// pass passes over bytes of the message, or ends where it has fewer.
func (p *Protobuf) pass(size int64) {
	p.groups, p.skip, p.state = 0, size, atBytes
	if p.at+size > p.frames[len(p.frames)-1].end {
		p.state = atEnd
	} else if size == 0 {
		p.next()
	}
}

// next expects a tag, behind all messages that end here.
func (p *Protobuf) next() {
	p.state = atTag
	if p.at > p.frames[len(p.frames)-1].end {
		p.state = atEnd
		return
	}
	for top := p.frames[len(p.frames)-1]; p.at >= top.end; top = p.frames[len(p.frames)-1] {
		if top.message == arrayValue || top.message == keyValueList {
			p.levels--
		}
		p.frames = p.frames[:len(p.frames)-1]
		p.groups = 0
	}
}
