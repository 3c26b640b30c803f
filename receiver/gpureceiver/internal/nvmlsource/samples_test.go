package nvmlsource

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestMeanSince(t *testing.T) {
	for name, test := range map[string]struct {
		samples []sample
		since   uint64
		mean    float64
		last    uint64
		found   bool
	}{
		"none":                      {},
		"all":                       {[]sample{{10, 20}, {20, 40}}, 0, 0.3, 20, true},
		"only new ones":             {[]sample{{10, 20}, {20, 40}}, 10, 0.4, 20, true},
		"nothing new":               {[]sample{{10, 20}, {20, 40}}, 20, 0, 20, false},
		"unused entries at the end": {[]sample{{10, 20}, {0, 0}, {0, 0}}, 0, 0.2, 10, true},
		"garbage":                   {[]sample{{10, 808334905}, {20, 50}}, 0, 0.5, 20, true},
		"out of order":              {[]sample{{30, 10}, {20, 30}}, 0, 0.2, 30, true},
		"idle is a value":           {[]sample{{10, 0}}, 0, 0, 10, true},
	} {
		t.Run(name, func(t *testing.T) {
			mean, last, found := meanSince(test.samples, test.since)
			assert.InDelta(t, test.mean, mean, 1e-12)
			assert.Equal(t, test.last, last)
			assert.Equal(t, test.found, found)
		})
	}
}
