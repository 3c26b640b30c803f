package flightrecorder

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
)

// maxNodes is the number of values of a dump: of one of 2,000 entries with 60 frames each,
// which is more than PyTorch keeps by default, there are a third.
const maxNodes = 2 << 20

// The opcodes of Python's pickle, protocol 2, that PyTorch writes. None of them makes
// anything but numbers, texts, lists and dictionaries: those that call are unknown here.
const (
	opProto      = 0x80
	opStop       = '.'
	opMark       = '('
	opNone       = 'N'
	opTrue       = 0x88
	opFalse      = 0x89
	opEmptyDict  = '}'
	opEmptyList  = ']'
	opEmptyTuple = ')'
	opSetItem    = 's'
	opSetItems   = 'u'
	opAppend     = 'a'
	opAppends    = 'e'
	opTuple      = 't'
	opTuple1     = 0x85
	opTuple2     = 0x86
	opTuple3     = 0x87
	opText       = 'X'
	opPut        = 'q'
	opLongPut    = 'r'
	opGet        = 'h'
	opLongGet    = 'j'
	opInt        = 'J'
	opInt1       = 'K'
	opInt2       = 'M'
	opLong1      = 0x8a
	opFloat      = 'G'
)

// The values of a dump: nil, bool, int64, float64, string, *list and dict.
type (
	list struct{ items []any }
	dict map[string]any
)

// mark is on the stack where the items of a list or a dictionary begin.
type mark struct{}

var (
	errStack = errors.New("a value is missing before an opcode")
	errLarge = fmt.Errorf("more than %d values", maxNodes)
)

// decoder reads a pickle. It keeps no more than what it has read. After an error it reads
// nothing of use.
type decoder struct {
	data  []byte
	stack []any
	memo  map[uint32]any
	nodes int
	err   error
}

// decode reads the value of a pickle. A value that is there more than once is shared.
func decode(data []byte) (any, error) {
	d := &decoder{data: data, memo: make(map[uint32]any)}
	for d.err == nil {
		op := byte(d.number(1))
		if op == opStop {
			if top := d.top(1); d.err == nil {
				return top[0], nil
			}
		}
		d.step(op)
		if d.nodes > maxNodes {
			d.fail(errLarge)
		}
	}
	return nil, d.err
}

// fail notes the first error.
func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// take returns the next bytes, none if there are fewer.
func (d *decoder) take(n uint32) []byte {
	if uint64(n) > uint64(len(d.data)) {
		d.fail(io.ErrUnexpectedEOF)
		return nil
	}
	taken := d.data[:n]
	d.data = d.data[n:]
	return taken
}

// number takes a number without sign.
func (d *decoder) number(size uint32) uint32 {
	var whole [4]byte
	copy(whole[:], d.take(size))
	return binary.LittleEndian.Uint32(whole[:])
}

func (d *decoder) push(v any) {
	d.nodes++
	d.stack = append(d.stack, v)
}

// aboveMark removes the newest mark and returns how many values are above it.
func (d *decoder) aboveMark() int {
	for i, v := range slices.Backward(d.stack) {
		if v == any(mark{}) {
			d.stack = slices.Delete(d.stack, i, i+1)
			return len(d.stack) - i
		}
	}
	d.fail(errStack)
	return 0
}

// top returns the newest n values, of which none is a mark. Without so many it returns
// none.
func (d *decoder) top(n int) []any {
	if n > len(d.stack) || slices.Contains(d.stack[len(d.stack)-n:], any(mark{})) {
		d.fail(errStack)
		return nil
	}
	return d.stack[len(d.stack)-n:]
}

// step does what an opcode says.
func (d *decoder) step(op byte) {
	switch op {
	case opProto:
		d.take(1)
	case opMark:
		d.push(mark{})
	case opNone:
		d.push(nil)
	case opTrue, opFalse:
		d.push(op == opTrue)
	case opEmptyDict:
		d.push(dict{})
	case opEmptyList, opEmptyTuple:
		d.push(&list{})
	case opSetItem:
		d.setItems(2)
	case opSetItems:
		d.setItems(d.aboveMark())
	case opAppend:
		d.appendItems(1)
	case opAppends:
		d.appendItems(d.aboveMark())
	case opTuple:
		d.tuple(d.aboveMark())
	case opTuple1, opTuple2, opTuple3:
		d.tuple(int(op-opTuple1) + 1)
	case opPut:
		d.put(d.number(1))
	case opLongPut:
		d.put(d.number(4))
	case opGet:
		d.get(d.number(1))
	case opLongGet:
		d.get(d.number(4))
	case opText:
		d.push(string(d.take(d.number(4))))
	case opLong1:
		d.push(d.signed(d.take(d.number(1))))
	case opInt1:
		d.push(int64(d.number(1)))
	case opInt2:
		d.push(int64(d.number(2)))
	case opInt:
		d.push(int64(int32(d.number(4)))) // #nosec G115 -- it has a sign
	case opFloat:
		var whole [8]byte
		copy(whole[:], d.take(8))
		d.push(math.Float64frombits(binary.BigEndian.Uint64(whole[:])))
	default:
		d.fail(fmt.Errorf("opcode 0x%02x is not one of a dump", op))
	}
}

func (d *decoder) tuple(n int) {
	of := &list{slices.Clone(d.top(n))}
	if d.err == nil {
		d.stack = d.stack[:len(d.stack)-n]
		d.push(of)
	}
}

func (d *decoder) appendItems(n int) {
	if items := d.top(n + 1); d.err == nil {
		if to, ok := items[0].(*list); ok {
			to.items = append(to.items, items[1:]...)
			d.stack = d.stack[:len(d.stack)-n]
			return
		}
	}
	d.fail(errStack)
}

func (d *decoder) setItems(n int) {
	items := d.top(n + 1)
	if d.err != nil || n%2 != 0 {
		d.fail(errStack)
		return
	}
	to, ok := items[0].(dict)
	if !ok {
		d.fail(errStack)
		return
	}
	for pair := range slices.Chunk(items[1:], 2) {
		switch key := pair[0].(type) {
		case string:
			to[key] = pair[1]
		case int64:
			to[strconv.FormatInt(key, 10)] = pair[1]
		default:
			d.fail(errors.New("a key is no text and no number"))
		}
	}
	d.stack = d.stack[:len(d.stack)-n]
}

// put keeps the newest value by a number, and get pushes it.
func (d *decoder) put(at uint32) {
	if newest := d.top(1); d.err == nil {
		d.memo[at] = newest[0]
	}
}

func (d *decoder) get(at uint32) {
	v, ok := d.memo[at]
	if !ok {
		d.fail(fmt.Errorf("nothing is remembered as %d", at))
	}
	d.push(v)
}

// signed reads up to eight bytes as a number with a sign.
func (d *decoder) signed(raw []byte) (v int64) {
	if len(raw) > 8 {
		d.fail(errors.New("a number has more than 64 bits"))
		return 0
	}
	for i, b := range raw {
		v |= int64(b) << (8 * i)
	}
	if shift := 64 - 8*len(raw); len(raw) > 0 && shift > 0 {
		v = v << shift >> shift
	}
	return v
}
