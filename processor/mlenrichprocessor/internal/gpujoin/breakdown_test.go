package gpujoin

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestBreakDown(t *testing.T) {
	for name, tt := range map[string]struct {
		sizes memorySizes
		want  [len(memoryParts)]int64 // all zero where there is none
	}{
		"all parts": {
			memorySizes{limit: 1000, used: 700, kept: 50, process: 500, others: 150, reserved: some(400), allocated: 300},
			[len(memoryParts)]int64{300, 100, 100, 150, 50 + 50, 250},
		},
		"alone, and all in use is the process's": {
			memorySizes{limit: 1000, used: 500, process: 500, reserved: some(500), allocated: 500},
			[len(memoryParts)]int64{500, 0, 0, 0, 0, 500},
		},
		"an allocator that has nothing yet": {
			memorySizes{limit: 1000, used: 300, kept: 100, process: 300},
			[len(memoryParts)]int64{0, 0, 300, 0, 100, 600},
		},
		"a GPU that is full": {
			memorySizes{limit: 1000, used: 900, kept: 100, process: 900, reserved: some(900), allocated: 100},
			[len(memoryParts)]int64{100, 800, 0, 0, 100, 0},
		},
		"an allocator that does not say what it has": {
			memorySizes{limit: 1000, used: 700, kept: 50, process: 500, others: 150, allocated: 300},
			[len(memoryParts)]int64{300, 0, 200, 150, 50 + 50, 250},
		},
		"allocated more than the process has, and no more is said": {
			sizes: memorySizes{limit: 1000, used: 500, process: 100, allocated: 101},
		},
		"allocated more than reserved":       {sizes: memorySizes{limit: 1000, used: 500, process: 500, reserved: some(100), allocated: 101}},
		"reserved more than the process has": {sizes: memorySizes{limit: 1000, used: 500, process: 99, reserved: some(100)}},
		"processes have more than is in use": {sizes: memorySizes{limit: 1000, used: 500, process: 300, others: 201}},
		"in use and kept more than there is": {sizes: memorySizes{limit: 1000, used: 950, kept: 51, process: 1}},
		"a size below zero":                  {sizes: memorySizes{limit: 1000, used: 500, process: 100, allocated: -1}},
		"a size beyond the limit":            {sizes: memorySizes{limit: 1000, used: math.MaxInt64, kept: math.MaxInt64, process: math.MaxInt64}},
		"a limit beyond any GPU's":           {sizes: memorySizes{limit: math.MaxInt64, used: 1, process: 1}},
		"no limit":                           {sizes: memorySizes{used: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			parts, ok := tt.sizes.breakDown()
			assert.Equal(t, tt.want, parts)
			assert.Equal(t, tt.want != [len(memoryParts)]int64{}, ok)
			if !ok {
				return
			}
			var sum int64
			for _, part := range parts {
				sum += part
			}
			assert.Equal(t, tt.sizes.limit, sum)
		})
	}
}

func FuzzBreakDown(f *testing.F) {
	f.Add(int64(1000), int64(700), int64(50), int64(500), int64(150), int64(400), int64(300))
	f.Add(int64(math.MaxInt64), int64(math.MaxInt64), int64(math.MinInt64), int64(-1), int64(1), int64(0), int64(2))
	f.Fuzz(func(t *testing.T, limit, used, kept, process, others, reserved, allocated int64) {
		sizes := memorySizes{limit, used, kept, process, others, count{reserved, reserved%2 == 0}, allocated}
		parts, ok := sizes.breakDown()
		if !ok {
			return
		}
		var sum int64
		for _, part := range parts {
			assert.GreaterOrEqual(t, part, int64(0))
			sum += part
		}
		assert.Equal(t, limit, sum)
	})
}

// some is a count that is there.
func some(n int64) count { return count{n: n, ok: true} }
