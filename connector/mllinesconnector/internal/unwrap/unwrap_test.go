package unwrap

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestPlain(t *testing.T) {
	assert.Equal(t, "step: 10  loss:  7.1", Plain("\x1b[31mstep: 10\x1b[0m  \x1b[38;5;39mloss:  7.1\x1b[39m"))
	assert.Equal(t, "bar", Plain("\x1b]0;title\abar\x1b[K"))
	assert.Equal(t, "cut", Plain("cut\x1b[31"))
	assert.Equal(t, "a\nb", Plain("a\x1b[\nb"))
	assert.Empty(t, Plain("\x1b"))
}

func TestPrefixed(t *testing.T) {
	for text, want := range map[string]Line{
		"iteration 1":                            {"iteration 1", "", -1, -1},
		"[default7]: iteration 1":                {"iteration 1", "[default7]:", -1, 7},
		"[default7]:iteration 1":                 {"iteration 1", "[default7]:", -1, 7},
		"[rank3]:   File \"x.py\"":               {"  File \"x.py\"", "[rank3]:", 3, -1},
		"[rank3]: Traceback (most recent call)":  {"Traceback (most recent call)", "[rank3]:", 3, -1},
		" 3: [default1]:text":                    {"text", " 3: [default1]:", 3, 1},
		"(TrainWorker pid=26, ip=10.0.0.1) text": {"text", "(TrainWorker pid=26, ip=10.0.0.1)", -1, -1},
		"[2025-04-13 23:41:12] iteration 1":      {"[2025-04-13 23:41:12] iteration 1", "", -1, -1},
		"[1]: text":                              {"[1]: text", "", -1, -1},
		"(x) text":                               {"(x) text", "", -1, -1},
		"12:30: text":                            {"12:30: text", "", -1, -1},
		"[rank99999999999]: text":                {"[rank99999999999]: text", "", -1, -1},
	} {
		assert.Equal(t, want, Prefixed(text), text)
	}
}

func TestStated(t *testing.T) {
	near := time.Date(2025, 1, 2, 0, 0, 0, 0, time.Local)
	for line, want := range map[string]struct {
		at    time.Time
		exact time.Duration
	}{
		" [2025-04-13 23:41:12] iteration":                          {time.Date(2025, 4, 13, 23, 41, 12, 0, time.Local), time.Second},
		"[titan] 2025-04-13 23:41:12,123 - root - INFO - step":      {time.Date(2025, 4, 13, 23, 41, 12, 123e6, time.Local), time.Millisecond},
		"2025-04-13T23:41:12.000001 | INFO":                         {time.Date(2025, 4, 13, 23, 41, 12, 1000, time.Local), time.Microsecond},
		"I0706 16:50:26.230209 123 metric_logger.py:214] completed": {time.Date(2025, 7, 6, 16, 50, 26, 230209e3, time.Local), time.Microsecond},
		"12/31 12:00:00 - mmengine - INFO - Epoch(train)":           {time.Date(2024, 12, 31, 12, 0, 0, 0, time.Local), time.Second},
		"2025/04/13 23:41:12 done":                                  {time.Date(2025, 4, 13, 23, 41, 12, 0, time.Local), time.Second},
	} {
		at, exact, ok := Stated(line, near)
		assert.True(t, ok, line)
		assert.Equal(t, want.at, at, line)
		assert.Equal(t, want.exact, exact, line)
	}
	for _, line := range []string{"", "12:00:00", "99/99 12:00:00", "2025-13-40 12:00:00", "text 23:41:12", "2025-04-13 25:41:12", "2025-04-13 23:41"} {
		_, _, ok := Stated(line, near)
		assert.False(t, ok, line)
	}
}
