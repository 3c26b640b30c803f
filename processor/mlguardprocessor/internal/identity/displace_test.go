package identity

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const (
	// home is the address of honest programs.
	home = "127.0.0.1"
	// soon is the time after which a new program has labels although somebody else
	// sends ever more names, later that after which it has them although somebody at the
	// same address has sent them.
	soon  = 2 * time.Minute
	later = idleAfter*time.Second + soon
)

// program sends a span and a point of a program, and reports whether both have all
// labels.
func (b *bed) program(name string) bool {
	b.tb.Helper()
	b.from = home
	resource := []any{"service.name", name, "service.instance.id", name + "-i", mlattr.RunID, name + "-r", mlattr.RankGlobal, 3}
	labels := []any{mlattr.GenAIRequestModel, name + "-m", mlattr.Operation, name + "-o", mlattr.ErrorType, name + "-e"}
	gotResource, gotSpan := b.span(resource, labels...)
	point := b.point(resource[:4], "user.id", name, "session.id", name, "process.pid", len(name), "queue", name)
	return gotResource["service.name"] == name && gotResource["service.instance.id"] == name+"-i" && gotResource[mlattr.RunID] == name+"-r" &&
		gotSpan[mlattr.GenAIRequestModel] == name+"-m" && gotSpan[mlattr.Operation] == name+"-o" && gotSpan[mlattr.ErrorType] == name+"-e" &&
		point["user.id"] == name && point["queue"] == name && gotSpan[mlattr.Overflow] == nil
}

// invent sends a span and a point of each of n invented programs.
func (b *bed) invent(address string, n int) {
	b.from = address
	for i := range n {
		name := fmt.Sprint("x", i)
		resource := []any{"service.name", name, "service.instance.id", name, mlattr.RunID, name, mlattr.RankGlobal, i}
		b.span(resource, mlattr.GenAIRequestModel, name, mlattr.Operation, name, mlattr.ErrorType, name)
		if i >= 1000 {
			continue // those fill the limits of points
		}
		b.point(resource[:4], "user.id", name, "session.id", name, "process.pid", i, "queue", name)
	}
}

// old are programs that have been there for longer than an hour.
const old = 10

func (b *bed) oldPrograms(t *testing.T) {
	t.Helper()
	for i := range old {
		require.True(t, b.program(fmt.Sprint("old", i)), "program %d at %v", i, b.clock.Sub(b.start))
	}
}

// TestNewProgramHasLabelsDespiteAFlood: 520 or 20,000 invented programs take no labels
// from those that are there, and a new one gets its own: soon if they come from
// elsewhere, and later if they came from its own address.
func TestNewProgramHasLabelsDespiteAFlood(t *testing.T) {
	for _, tt := range []struct {
		name    string
		n       int
		address string
		// ends reports whether they stop when they have all labels.
		ends   bool
		within time.Duration
	}{
		{"520 of the same address", 520, home, true, later},
		{"520 from elsewhere", 520, "192.0.2.66", true, soon},
		{"520 from elsewhere, without end", 520, "192.0.2.66", false, soon},
		{"20000 of the same address", 20_000, home, true, later},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := DefaultConfig()
			cfg.Limits.Instance, cfg.Limits.Model, cfg.Limits.Operation, cfg.Limits.User = 500, 500, 500, 500
			cfg.Limits.Session, cfg.Limits.Process, cfg.Limits.Label, cfg.Limits.Rank = 500, 500, 500, 500
			cfg.Limits.Combination, cfg.Limits.Stream = 500, 500
			b := newBed(t, cfg)
			for range 70 {
				b.oldPrograms(t)
				b.after(time.Minute)
			}
			for range 4 {
				b.oldPrograms(t)
				b.invent(tt.address, tt.n)
				b.after(10 * time.Second)
			}
			for k, table := range b.tables {
				admitted, _ := table.size()
				require.Positive(t, admitted, kindNames[k])
			}
			require.Len(t, b.tables[kindService].admitted, cfg.Limits.Service, "the limit is reached")
			require.False(t, b.program("new"))
			begun := b.clock
			for !b.program("new") {
				require.LessOrEqual(t, b.clock.Sub(begun), tt.within)
				b.after(10 * time.Second)
				b.oldPrograms(t)
				if !tt.ends {
					b.invent(tt.address, tt.n)
				}
			}
			t.Logf("after %v", b.clock.Sub(begun))
			for range 30 { // it keeps them
				b.after(10 * time.Second)
				if !tt.ends {
					b.invent(tt.address, tt.n)
				}
				require.True(t, b.program("new"))
				b.oldPrograms(t)
			}
			b.assertBounded(t)
		})
	}
}

// TestQuietProgramKeepsItsLabels: who was there for an hour keeps labels until they
// expire, also if it sends nothing and others at its address send ever new names.
func TestQuietProgramKeepsItsLabels(t *testing.T) {
	b := newBed(t, DefaultConfig())
	for range 65 {
		b.oldPrograms(t)
		b.after(time.Minute)
	}
	for minute := range 50 {
		b.invent(home, 600+10*minute)
		b.after(time.Minute)
	}
	b.oldPrograms(t)
}

// TestDisplacedIdentitiesAreBounded: Prometheus shows what has left until it expires
// there, so that within an expiration no more than a quarter of a limit leaves.
func TestDisplacedIdentitiesAreBounded(t *testing.T) {
	cfg := DefaultConfig()
	b := newBed(t, cfg)
	shown := map[any]bool{}
	for i := 0; b.clock.Sub(b.start) < cfg.Expiration; i++ {
		b.from = fmt.Sprintf("192.0.2.%d", i%200)
		for j := range 100 {
			resource, _ := b.span(service(fmt.Sprint("s", i/50, "-", j)))
			shown[resource["service.name"]] = true
		}
		b.after(6 * time.Second)
	}
	admitted, evicted := b.tables[kindService].size()
	assert.Equal(t, int64(cfg.Limits.Service), admitted)
	assert.Positive(t, evicted)
	assert.LessOrEqual(t, len(shown), 1+cfg.Limits.Service*5/4)
}

// TestSendersHaveEqualShares: a sender with few names gets more from one with many, but
// never from one with its share, and not what was there for an hour up to three quarters.
func TestSendersHaveEqualShares(t *testing.T) {
	cfg := small()
	cfg.Limits.Service = 100
	b := newBed(t, cfg)
	send := func(address string, n int) (labelled int) {
		b.from = address
		for j := range n {
			if resource, _ := b.span(service(fmt.Sprint(address, "-", j))); resource["service.name"] != mlattr.Other {
				labelled++
			}
		}
		return labelled
	}
	for range 8 {
		send("192.0.2.0", 120)
		b.after(10 * time.Second)
	}
	require.Equal(t, 100, send("192.0.2.0", 120))
	for range 6 * 60 {
		send("192.0.2.0", 120)
		send("192.0.2.1", 20)
		b.after(time.Minute)
	}
	assert.Equal(t, 20, send("192.0.2.1", 20), "it needs less than its share")
	assert.Equal(t, 80, send("192.0.2.0", 120))
	for range 6 * 60 {
		send("192.0.2.0", 120)
		send("192.0.2.1", 20)
		send("192.0.2.2", 120)
		b.after(time.Minute)
	}
	assert.Equal(t, 75, send("192.0.2.0", 120), "three quarters")
	assert.Equal(t, 20, send("192.0.2.1", 20))
	assert.Equal(t, 5, send("192.0.2.2", 120))
}
