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
		if op == '.' { // STOP
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

// step does what an opcode of Python's pickle, protocol 2, says. None of those that PyTorch
// writes makes anything but numbers, texts, lists and dictionaries: those that call are
// unknown here.
func (d *decoder) step(op byte) {
	switch op {
	case 0x80: // PROTO
		d.take(1)
	case '(': // MARK
		d.push(mark{})
	case 'N': // NONE
		d.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		d.push(op == 0x88)
	case '}': // EMPTY_DICT
		d.push(dict{})
	case ']', ')': // EMPTY_LIST, EMPTY_TUPLE
		d.push(&list{})
	case 's': // SETITEM
		d.setItems(2)
	case 'u': // SETITEMS
		d.setItems(d.aboveMark())
	case 'a': // APPEND
		d.appendItems(1)
	case 'e': // APPENDS
		d.appendItems(d.aboveMark())
	case 't': // TUPLE
		d.tuple(d.aboveMark())
	case 0x85, 0x86, 0x87: // TUPLE1 to TUPLE3
		d.tuple(int(op - 0x84))
	case 'q': // BINPUT
		d.put(d.number(1))
	case 'r': // LONG_BINPUT
		d.put(d.number(4))
	case 'h': // BINGET
		d.get(d.number(1))
	case 'j': // LONG_BINGET
		d.get(d.number(4))
	case 'X': // BINUNICODE
		d.push(string(d.take(d.number(4))))
	case 0x8a: // LONG1
		d.push(d.signed(d.take(d.number(1))))
	case 'K': // BININT1
		d.push(int64(d.number(1)))
	case 'M': // BININT2
		d.push(int64(d.number(2)))
	case 'J': // BININT
		d.push(int64(int32(d.number(4)))) // #nosec G115 -- it has a sign
	case 'G': // BINFLOAT
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
	var to dict
	if d.err == nil {
		to, _ = items[0].(dict)
	}
	if to == nil || n%2 != 0 {
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
	shift := 64 - 8*len(raw)
	return v << shift >> shift
}
