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

// decoder reads a pickle. It keeps no more than what it has read.
type decoder struct {
	data  []byte
	stack []any
	memo  map[uint32]any
	nodes int
}

// decode reads the value of a pickle. A value that is there more than once is shared.
func decode(data []byte) (any, error) {
	d := &decoder{data: data, memo: make(map[uint32]any)}
	for {
		op, err := d.take(1)
		if err != nil {
			return nil, err
		}
		if op[0] == opStop {
			return d.pop()
		}
		if err := d.step(op[0]); err != nil {
			return nil, err
		}
		if d.nodes > maxNodes {
			return nil, errLarge
		}
	}
}

// take returns the next bytes.
func (d *decoder) take(n uint64) ([]byte, error) {
	if n > uint64(len(d.data)) {
		return nil, io.ErrUnexpectedEOF
	}
	taken := d.data[:n]
	d.data = d.data[n:]
	return taken, nil
}

// number takes a number without sign.
func (d *decoder) number(size uint64) (n uint32, err error) {
	raw, err := d.take(size)
	if err != nil {
		return 0, err
	}
	var whole [4]byte
	copy(whole[:], raw)
	return binary.LittleEndian.Uint32(whole[:]), nil
}

func (d *decoder) push(v any) {
	d.nodes++
	d.stack = append(d.stack, v)
}

func (d *decoder) pop() (any, error) {
	n := len(d.stack)
	if n == 0 {
		return nil, errStack
	}
	v := d.stack[n-1]
	if _, marked := v.(mark); marked {
		return nil, errStack
	}
	d.stack = d.stack[:n-1]
	return v, nil
}

// popToMark returns what is above the newest mark, and removes both. It is valid until the
// next push.
func (d *decoder) popToMark() ([]any, error) {
	for i, v := range slices.Backward(d.stack) {
		if _, marked := v.(mark); marked {
			items := d.stack[i+1:]
			d.stack = d.stack[:i]
			return items, nil
		}
	}
	return nil, errStack
}

// step does what an opcode says.
func (d *decoder) step(op byte) error {
	switch op {
	case opProto:
		_, err := d.take(1)
		return err
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
		return d.setItems(2)
	case opSetItems, opAppends, opTuple:
		items, err := d.popToMark()
		if err != nil {
			return err
		}
		// They are still behind the end of the stack.
		n := len(items)
		d.stack = append(d.stack, items...)
		switch op {
		case opTuple:
			return d.tuple(n)
		case opAppends:
			return d.appendItems(n)
		default:
			return d.setItems(n)
		}
	case opAppend:
		return d.appendItems(1)
	case opTuple1, opTuple2, opTuple3:
		return d.tuple(int(op-opTuple1) + 1)
	case opPut, opLongPut, opGet, opLongGet:
		return d.remember(op)
	default:
		return d.scalar(op)
	}
	return nil
}

// top returns the newest n values, of which none is a mark.
func (d *decoder) top(n int) ([]any, error) {
	if n > len(d.stack) {
		return nil, errStack
	}
	items := d.stack[len(d.stack)-n:]
	for _, v := range items {
		if _, marked := v.(mark); marked {
			return nil, errStack
		}
	}
	return items, nil
}

func (d *decoder) tuple(n int) error {
	items, err := d.top(n)
	if err != nil {
		return err
	}
	of := &list{append([]any(nil), items...)}
	d.stack = d.stack[:len(d.stack)-n]
	d.push(of)
	return nil
}

func (d *decoder) appendItems(n int) error {
	items, err := d.top(n + 1)
	if err != nil {
		return err
	}
	to, ok := items[0].(*list)
	if !ok {
		return errStack
	}
	to.items = append(to.items, items[1:]...)
	d.stack = d.stack[:len(d.stack)-n]
	return nil
}

func (d *decoder) setItems(n int) error {
	items, err := d.top(n + 1)
	if err != nil || n%2 != 0 {
		return errStack
	}
	to, ok := items[0].(dict)
	if !ok {
		return errStack
	}
	for i := 1; i < len(items); i += 2 {
		switch key := items[i].(type) {
		case string:
			to[key] = items[i+1]
		case int64:
			to[strconv.FormatInt(key, 10)] = items[i+1]
		default:
			return errors.New("a key is no text and no number")
		}
	}
	d.stack = d.stack[:len(d.stack)-n]
	return nil
}

// remember keeps the newest value by a number, or pushes one that was kept.
func (d *decoder) remember(op byte) error {
	size := uint64(1)
	if op == opLongPut || op == opLongGet {
		size = 4
	}
	at, err := d.number(size)
	if err != nil {
		return err
	}
	if op == opPut || op == opLongPut {
		newest, err := d.top(1)
		if err == nil {
			d.memo[at] = newest[0]
		}
		return err
	}
	v, ok := d.memo[at]
	if !ok {
		return fmt.Errorf("nothing is remembered as %d", at)
	}
	d.push(v)
	return nil
}

// scalar reads a number or a text.
func (d *decoder) scalar(op byte) error {
	switch op {
	case opText, opLong1:
		// Their length comes first.
		size := uint64(4)
		if op == opLong1 {
			size = 1
		}
		n, err := d.number(size)
		if err != nil {
			return err
		}
		raw, err := d.take(uint64(n))
		switch {
		case err != nil:
			return err
		case op == opText:
			d.push(string(raw))
		case len(raw) > 8:
			return errors.New("a number has more than 64 bits")
		default:
			d.push(signed(raw))
		}
	case opInt1:
		n, err := d.number(1)
		d.push(int64(n))
		return err
	case opInt2:
		n, err := d.number(2)
		d.push(int64(n))
		return err
	case opInt:
		n, err := d.number(4)
		d.push(int64(int32(n))) // #nosec G115 -- it has a sign
		return err
	case opFloat:
		raw, err := d.take(8)
		if err != nil {
			return err
		}
		d.push(math.Float64frombits(binary.BigEndian.Uint64(raw)))
	default:
		return fmt.Errorf("opcode 0x%02x is not one of a dump", op)
	}
	return nil
}

// signed reads up to eight bytes as a number with a sign.
func signed(raw []byte) (v int64) {
	for i, b := range raw {
		v |= int64(b) << (8 * i)
	}
	if shift := 64 - 8*len(raw); len(raw) > 0 && shift > 0 {
		v = v << shift >> shift
	}
	return v
}
