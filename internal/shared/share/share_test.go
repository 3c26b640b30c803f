package share

import (
	"fmt"
	"net/netip"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
)

var start = time.Unix(1_800_000_000, 0)

// from returns the sender behind an address.
func from(address string) Sender {
	return SenderOf(sender.ID{Kind: sender.Address, Network: netip.PrefixFrom(netip.MustParseAddr(address), 32)})
}

// lives notes that services succeed for an hour.
func lives(t *History, origins ...Origin) {
	for i := range establishedAfter {
		for _, o := range origins {
			t.Succeeded(o, start.Add(time.Duration(i)*period))
		}
	}
}

// TestEstablished: an hour is twelve periods in which something succeeded, not
// one span an hour ago.
func TestEstablished(t *testing.T) {
	o := OriginOf(from("192.0.2.1"), "s")
	s := NewHistory()
	for i := range establishedAfter - 1 {
		for range 3 {
			s.Succeeded(o, start.Add(time.Duration(i)*period))
		}
		assert.False(t, isEstablished(s, o))
	}
	s.Succeeded(o, start.Add(30*24*time.Hour))
	assert.True(t, isEstablished(s, o))
	assert.False(t, isEstablished(s, OriginOf(from("192.0.2.2"), "s")), "the same name from elsewhere")
	s.Succeeded(o, start)
	assert.True(t, isEstablished(s, o), "a clock that goes back takes nothing")
}

// TestHistoryAreBounded: invented names take no room from those that are
// established, nor from others that come to stay.
func TestHistoryAreBounded(t *testing.T) {
	for name, attacker := range map[string]string{"from elsewhere": "192.0.2.66", "over the same connection": "192.0.2.1"} {
		t.Run(name, func(t *testing.T) {
			s := NewHistory()
			old, young := OriginOf(from("192.0.2.1"), "old"), OriginOf(from("192.0.2.1"), "young")
			lives(s, old)
			n := 0
			// Its first periods may be forgotten: until one is not, it is one of many
			// that came once.
			for i := range establishedAfter + 3 {
				now := start.Add(2 * time.Hour).Add(time.Duration(i) * period)
				for range maxServices {
					if n++; n%200 == 0 {
						s.Succeeded(young, now)
					}
					s.Succeeded(OriginOf(from(attacker), fmt.Sprint("invented", n)), now)
				}
			}
			assert.LessOrEqual(t, len(s.services), maxServices)
			assert.True(t, isEstablished(s, old))
			assert.True(t, isEstablished(s, young))
		})
	}
	t.Run("all of them established", func(t *testing.T) {
		s := NewHistory()
		old := OriginOf(from("192.0.2.1"), "old")
		lives(s, old)
		for n := range 2 * maxServices {
			lives(s, OriginOf(from("192.0.2.66"), fmt.Sprint("patient", n)))
		}
		assert.LessOrEqual(t, len(s.services), maxServices)
		assert.True(t, isEstablished(s, old))
		services, established := 0, 0
		for _, sender := range s.senders {
			services += sender.services
			if sender.record.established() {
				established++
			}
		}
		assert.Equal(t, len(s.services), services)
		assert.Equal(t, established, s.established)
	})
	t.Run("of many senders", func(t *testing.T) {
		s := NewHistory()
		for n := range 3 * maxServices {
			s.Succeeded(OriginOf(Sender(n), "s"), start)
		}
		assert.LessOrEqual(t, len(s.services), maxServices)
		assert.Len(t, s.senders, len(s.services))
	})
}

func TestKeep(t *testing.T) {
	item := func(a, b, c uint64, weight int64) Item { return Item{Path{a, b, c}, weight} }
	for name, tc := range map[string]struct {
		items []Item
		limit int64
		want  string
	}{
		"all fit":                      {[]Item{item(1, 1, 1, 2), item(2, 1, 1, 2)}, 4, "++"},
		"none fits":                    {[]Item{item(1, 1, 1, 2)}, 1, "-"},
		"the first of one stay":        {[]Item{item(1, 1, 1, 1), item(1, 1, 1, 1), item(1, 1, 1, 1)}, 2, "++-"},
		"equal shares":                 {[]Item{item(1, 1, 1, 1), item(1, 1, 1, 1), item(1, 1, 1, 1), item(2, 1, 1, 1), item(2, 1, 1, 1)}, 4, "++-++"},
		"what one leaves others have":  {[]Item{item(1, 1, 1, 1), item(1, 1, 1, 1), item(1, 1, 1, 1), item(2, 1, 1, 1)}, 3, "++-+"},
		"many of a branch are one":     {[]Item{item(0, 1, 1, 1), item(0, 2, 1, 1), item(0, 3, 1, 1), item(0, 4, 1, 1), item(5, 1, 1, 1), item(5, 1, 1, 1)}, 4, "++--++"},
		"of equals the first":          {[]Item{item(1, 1, 1, 1), item(2, 1, 1, 1), item(3, 1, 1, 1)}, 2, "++-"},
		"what is too large makes room": {[]Item{item(1, 1, 1, 9), item(1, 1, 1, 1)}, 3, "-+"},
		"no room":                      {[]Item{item(1, 1, 1, 1)}, 0, "-"},
		"nothing":                      {nil, 3, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := make([]byte, 0, len(tc.items))
			for _, kept := range Keep(tc.items, tc.limit) {
				got = append(got, map[bool]byte{true: '+', false: '-'}[kept])
			}
			assert.Equal(t, tc.want, string(got))
		})
	}
}

// TestOnce: what came only once is one service, whatever names it has, and leaves before
// others of the sender.
func TestOnce(t *testing.T) {
	s, home := NewHistory(), from("192.0.2.1")
	origin := func(name string) Origin { return OriginOf(home, name) }
	for _, established := range []bool{false, true} {
		if established {
			lives(s, origin("old"))
		}
		s.Succeeded(origin("again"), start)
		s.Succeeded(origin("again"), start.Add(againAfter))
		var items []Item
		for i := range 1000 {
			invented := origin(strconv.Itoa(i))
			s.Succeeded(invented, start)
			s.Succeeded(invented, start.Add(againAfter-time.Second))
			items = append(items, Item{Path: s.Path(invented), Weight: 1})
		}
		for range 40 {
			items = append(items, Item{Path: s.Path(origin("again")), Weight: 1})
		}
		kept := Keep(items, 100)
		for i := range 40 {
			assert.True(t, kept[1000+i])
		}
		leave := Leaving(items, 900)
		assert.Len(t, leave, 900)
		for i, at := range leave {
			assert.Less(t, at, 1000)
			assert.True(t, i == 0 || at < leave[i-1], "the last one first")
		}
	}
}

func TestLeaving(t *testing.T) {
	assert.Empty(t, Leaving(nil, 1))
	assert.Equal(t, []int{1, 0}, Leaving([]Item{{Weight: 1}, {Weight: 1}}, 5))
	assert.Equal(t, []int{1}, Leaving([]Item{{Weight: 1}, {Weight: 1}}, 1))
}

func FuzzKeep(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4}, int64(5))
	f.Fuzz(func(t *testing.T, shape []byte, limit int64) {
		limit = max(limit, 0)
		var items []Item
		for _, b := range shape {
			items = append(items, Item{Path{uint64(b & 3), uint64(b >> 2 & 3), uint64(b >> 4 & 3)}, int64(b >> 6)})
		}
		var total, used int64
		for i, kept := range Keep(items, limit) {
			total += items[i].Weight
			if kept {
				used += items[i].Weight
			}
		}
		assert.LessOrEqual(t, used, limit)
		if total <= limit {
			assert.Equal(t, total, used)
		}
	})
}

// takeAll takes until there is nothing more for a claim.
func takeAll(b *Budget, c Claim, now time.Time) (n int) {
	for b.Take(c, true, now) {
		n++
	}
	return n
}

func TestBudget(t *testing.T) {
	a, z := from("192.0.2.1"), from("192.0.2.66")
	t.Run("one service has half, and the rest is left", func(t *testing.T) {
		s, b := NewHistory(), NewBudget(20, 10)
		assert.Equal(t, 10, takeAll(b, s.Claim(OriginOf(a, "x")), start))
		assert.Positive(t, takeAll(b, s.Claim(OriginOf(a, "y")), start))
		assert.Positive(t, takeAll(b, s.Claim(OriginOf(z, "x")), start))
	})
	t.Run("new ones leave half to those that are established", func(t *testing.T) {
		s, b := NewHistory(), NewBudget(20, 10)
		old := OriginOf(a, "old")
		lives(s, old)
		taken := 0
		for i := range 1000 {
			taken += takeAll(b, s.Claim(OriginOf(Sender(i), "new")), start)
		}
		assert.Equal(t, 10, taken)
		assert.Equal(t, 5, takeAll(b, s.Claim(old), start))
	})
	t.Run("names are no more than one name", func(t *testing.T) {
		s, b := NewHistory(), NewBudget(20, 10)
		old := OriginOf(a, "old")
		lives(s, old)
		taken := 0
		for i := range 1000 {
			taken += takeAll(b, s.Claim(OriginOf(a, strconv.Itoa(i))), start)
		}
		assert.LessOrEqual(t, taken, 10)
		assert.Positive(t, takeAll(b, s.Claim(old), start))
	})
	t.Run("a lone service has the whole rate", func(t *testing.T) {
		s, b := NewHistory(), NewBudget(20, 10)
		c := s.Claim(OriginOf(a, "x"))
		takeAll(b, c, start)
		taken := 0
		for i := range 3600 {
			taken += takeAll(b, c, start.Add(time.Duration(i+1)*time.Second))
		}
		assert.InDelta(t, 600, taken, 2)
	})
	t.Run("of two, each has the same", func(t *testing.T) {
		s, b := NewHistory(), NewBudget(20, 60)
		var taken [2]int
		for i := range 3600 {
			now := start.Add(time.Duration(i) * time.Second)
			for j, sender := range []Sender{a, z} {
				taken[j] += takeAll(b, s.Claim(OriginOf(sender, "x")), now)
			}
		}
		assert.InDelta(t, 3600, taken[0]+taken[1], 25)
		assert.InEpsilon(t, taken[0], taken[1], 0.2)
	})
	t.Run("what is of little use leaves half", func(t *testing.T) {
		s, b := NewHistory(), NewBudget(20, 10)
		c := s.Claim(OriginOf(a, "x"))
		n := 0
		for b.Take(c, false, start) {
			n++
		}
		assert.Equal(t, 5, n)
		assert.True(t, b.Take(c, true, start))
	})
	t.Run("it is bounded", func(t *testing.T) {
		s, b := NewHistory(), NewBudget(1000, 60_000)
		for i := range 100_000 {
			b.Take(s.Claim(OriginOf(Sender(i), "x")), true, start.Add(time.Duration(i)*time.Millisecond))
		}
		assert.LessOrEqual(t, len(b.used), 10_000)
	})
	t.Run("time that goes back gives nothing", func(t *testing.T) {
		s, b := NewHistory(), NewBudget(2, 1)
		c := s.Claim(OriginOf(a, "x"))
		assert.True(t, b.Take(c, true, start))
		assert.False(t, b.Take(c, true, start.Add(-time.Hour)))
		assert.True(t, b.Take(c, true, start.Add(time.Hour)))
	})
}

func isEstablished(h *History, o Origin) bool { return h.Path(o) == EstablishedPath(o) }
