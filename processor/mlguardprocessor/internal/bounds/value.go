package bounds

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"go.opentelemetry.io/collector/pdata/pcommon"
)

// overhead is the size in bytes that an element counts in addition to its text
// and key. Without it, a million empty elements would count nothing.
const overhead = 8

// list is a slice of pdata with elements E.
type list[E any] interface {
	Len() int
	RemoveIf(remove func(E) bool)
}

// keepFirst removes all but the first keep elements of a list.
func keepFirst[E any, L list[E]](l L, keep int) {
	l.RemoveIf(func(E) bool {
		keep--
		return keep < 0
	})
}

// admit removes elements of a list beyond most and beyond the remaining items of the
// request, and returns how many it removed.
func admit[E any, L list[E]](c *cutter, l L, most int, limit Limit) uint32 {
	n := l.Len()
	keep := min(n, most)
	c.counts[limit] += int64(n - keep)
	if keep > c.items {
		c.counts[Items] += int64(keep - c.items)
		keep = c.items
	}
	c.items -= keep
	if keep < n {
		keepFirst(l, keep)
	}
	return uint32(n - keep)
}

// items removes elements of a list beyond the remaining items of the request.
func items[E any, L list[E]](c *cutter, l L) L {
	admit(c, l, c.MaxItems, Items)
	return l
}

// attributes limits the attributes of an item, and returns how many it dropped.
func (c *cutter) attributes(m pcommon.Map) uint32 {
	c.bytes = c.MaxItemBytes
	return c.entries(m, c.MaxAttributes, Attributes, 0)
}

// cutItem limits the attributes of an item that counts those that were dropped.
func cutItem[T interface {
	Attributes() pcommon.Map
	DroppedAttributesCount() uint32
	SetDroppedAttributesCount(count uint32)
}](c *cutter, item T) {
	if n := c.attributes(item.Attributes()); n > 0 {
		item.SetDroppedAttributesCount(item.DroppedAttributesCount() + n)
	}
}

// entries limits the entries of a map whose values are enclosed by depth arrays
// and maps, and returns how many it dropped.
func (c *cutter) entries(m pcommon.Map, most int, limit Limit, depth int) uint32 {
	keep := min(m.Len(), most)
	i, long := 0, 0
	for key, v := range m.All() {
		if i == keep {
			break
		}
		if len(key) > c.MaxNameBytes {
			long++
		} else {
			if len(key)+overhead > c.bytes {
				keep, limit = i, ItemBytes
				break
			}
			c.bytes -= len(key) + overhead
			c.value(v, depth)
		}
		i++
	}
	beyond := m.Len() - keep
	if beyond+long == 0 {
		return 0
	}
	c.counts[limit] += int64(beyond)
	c.counts[NameBytes] += int64(long)
	m.RemoveIf(func(key string, _ pcommon.Value) bool {
		keep--
		return keep < 0 || len(key) > c.MaxNameBytes
	})
	return uint32(beyond + long)
}

// value limits a value that is enclosed by depth arrays and maps.
func (c *cutter) value(v pcommon.Value, depth int) {
	switch v.Type() {
	case pcommon.ValueTypeStr:
		size, by := c.room()
		if len(v.Str()) > size {
			v.SetStr(c.shorten(v.Str(), size, by))
		}
		c.bytes -= min(len(v.Str()), c.bytes)
	case pcommon.ValueTypeBytes:
		if size, by := c.room(); v.Bytes().Len() > size {
			c.counts[by]++
			v.SetStr("[cut: " + strconv.Itoa(v.Bytes().Len()) + " bytes]")
		} else {
			c.bytes -= v.Bytes().Len()
		}
	case pcommon.ValueTypeSlice:
		if !c.tooDeep(v, depth) {
			c.elements(v.Slice(), depth+1)
		}
	case pcommon.ValueTypeMap:
		if c.tooDeep(v, depth) {
			return
		}
		if n := c.entries(v.Map(), c.elementsOf(v.Map().Len()), Elements, depth+1); n > 0 {
			v.Map().PutStr("[cut]", strconv.FormatUint(uint64(n), 10)+" more entries")
		}
	}
}

func (c *cutter) tooDeep(v pcommon.Value, depth int) bool {
	if depth < c.MaxDepth {
		return false
	}
	c.counts[Depth]++
	v.SetStr("[cut: nested deeper than " + strconv.Itoa(c.MaxDepth) + " levels]")
	return true
}

// elementsOf returns how many of n elements stay. If some are dropped, the last
// remaining one is the text that says so.
func (c *cutter) elementsOf(n int) int {
	if n > c.MaxElements {
		return c.MaxElements - 1
	}
	return n
}

func (c *cutter) elements(s pcommon.Slice, depth int) {
	n, limit := s.Len(), Elements
	keep := c.elementsOf(n)
	for i := range keep {
		if c.bytes < overhead {
			keep, limit = i, ItemBytes
			break
		}
		c.bytes -= overhead
		c.value(s.At(i), depth)
	}
	if keep < n {
		c.counts[limit] += int64(n - keep)
		keepFirst(s, keep)
		s.AppendEmpty().SetStr("[cut: " + strconv.Itoa(n-keep) + " more elements]")
	}
}

// room returns the size in bytes that the next value may have, and the limit that
// determines it.
func (c *cutter) room() (size int, by Limit) {
	if c.bytes < c.MaxValueBytes {
		return c.bytes, ItemBytes
	}
	return c.MaxValueBytes, ValueBytes
}

// cutName limits a name.
func cutName(c *cutter, name string, set func(string)) {
	if len(name) > c.MaxNameBytes {
		set(c.shorten(name, c.MaxNameBytes, NameBytes))
	}
}

// traceState drops members from the end, as the W3C recommendation requires.
func (c *cutter) traceState(state pcommon.TraceState) {
	raw := state.AsRaw()
	if len(raw) <= c.MaxNameBytes {
		return
	}
	c.counts[NameBytes]++
	end := strings.LastIndexByte(raw[:c.MaxNameBytes+1], ',')
	state.FromRaw(raw[:max(end, 0)])
}

// shorten cuts text to limit bytes, at a character boundary, including a suffix
// with the original length. If the limit is too small for the suffix, only the
// suffix remains, and the result may exceed the limit.
func (c *cutter) shorten(text string, limit int, exceeded Limit) string {
	c.counts[exceeded]++
	mark := "[cut: " + strconv.Itoa(len(text)) + " bytes]"
	end := limit - len(mark) - 1
	if end <= 0 {
		return mark
	}
	for back := 0; back < utf8.UTFMax && end > 0 && !utf8.RuneStart(text[end]); back++ {
		end--
	}
	return text[:end] + " " + mark
}
