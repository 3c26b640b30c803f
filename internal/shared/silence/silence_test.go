package silence_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/silence"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// sends returns a sender after arrivals, and the time of the last one.
func sends(gaps ...time.Duration) (*silence.Sender, time.Time) {
	var s silence.Sender
	now := start
	s.See(now)
	for _, gap := range gaps {
		now = now.Add(gap)
		s.See(now)
	}
	return &s, now
}

func repeated(n int, gaps ...time.Duration) (all []time.Duration) {
	for range n {
		all = append(all, gaps...)
	}
	return all
}

func TestWhenASenderIsSilent(t *testing.T) {
	const ms, s, m = time.Millisecond, time.Second, time.Minute
	for name, tt := range map[string]struct {
		gaps  []time.Duration
		after time.Duration
	}{
		"it has sent once":                   {nil, m},
		"every 10 s":                         {repeated(20, 10*s), 30 * s},
		"every second":                       {repeated(20, s), 15 * s},
		"several requests at once":           {repeated(20, 9998*ms, ms, ms), 30 * s},
		"every minute":                       {repeated(20, m), 3 * m},
		"every hour":                         {repeated(20, time.Hour), 15 * m},
		"at two intervals":                   {repeated(20, s, s, 10*s), 30 * s},
		"an outage is no usual pause":        {append(repeated(20, 10*s), 20*m), time.Minute},
		"a pause that comes again and again": {append(repeated(60, s), repeated(4, m)...), 3 * m},
	} {
		t.Run(name, func(t *testing.T) {
			sender, _ := sends(tt.gaps...)
			assert.Equal(t, tt.after, sender.After())
			assert.False(t, sender.Silent(sender.Last.Add(tt.after)))
			assert.True(t, sender.Silent(sender.Last.Add(tt.after+1)))
		})
	}
}

func TestWhatHasSentNothingIsNotSilent(t *testing.T) {
	assert.False(t, new(silence.Sender).Silent(start))
}

func TestTheClockGoesBack(t *testing.T) {
	sender, last := sends(repeated(5, 10*time.Second)...)
	back := last.Add(-time.Hour)
	sender.See(back)
	assert.Equal(t, back, sender.Last)
	assert.True(t, sender.Silent(back.Add(31*time.Second)))
}

// What another collector tells of a time is news once.
func TestATimeThatIsToldAgain(t *testing.T) {
	sender, last := sends(repeated(5, 10*time.Second)...)
	told := last.Add(10 * time.Second)
	for range 100 {
		sender.Hear(told)
		sender.Hear(last)
	}
	assert.Equal(t, told, sender.Last)
	assert.True(t, sender.Silent(told.Add(31*time.Second)))
}
