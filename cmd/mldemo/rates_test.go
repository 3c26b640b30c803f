package main

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// point is a counter's value at a number of seconds; a negative value means
// that the series was missing from that scrape.
type point struct{ second, value float64 }

func TestRate(t *testing.T) {
	for name, test := range map[string]struct {
		points []point
		want   reading
	}{
		"no scrape":                    {nil, reading{}},
		"one scrape":                   {[]point{{0, 5}}, reading{}},
		"growth by the scrapes' clock": {[]point{{0, 1000}, {4, 1200}}, known(50)},
		"an uneven interval":           {[]point{{0, 0}, {0.5, 10}}, known(20)},
		"standing still is known":      {[]point{{0, 7}, {2, 7}}, known(0)},
		"a burst is spread":            {[]point{{0, 0}, {2, 0}, {4, 40}, {6, 40}, {8, 80}}, known(10)},
		"a reset gives none":           {[]point{{0, 1000}, {2, 4000}, {4, 200}}, reading{}},
		"after a reset it starts anew": {[]point{{0, 1000}, {2, 4000}, {4, 200}, {6, 260}}, known(30)},
		"new in this scrape":           {[]point{{0, -1}, {2, 50}}, reading{}},
		"gone from this scrape":        {[]point{{0, 10}, {2, -1}}, reading{}},
		"a gap is not bridged":         {[]point{{0, 10}, {2, -1}, {4, 500}, {6, 520}}, known(10)},
		"out of the window":            {[]point{{0, 0}, {21, 1000}, {23, 1010}}, known(5)},
		"the clock went back":          {[]point{{100, 10}, {50, 20}, {52, 30}}, known(5)},
	} {
		t.Run(name, func(t *testing.T) {
			h := &history{}
			for _, p := range test.points {
				s := &scrape{at: time.Unix(0, int64(p.second*1e9)), families: map[string]map[string]sample{}}
				if p.value >= 0 {
					s.families["c"] = map[string]sample{"": {value: p.value}}
				}
				h.add(s)
			}
			assert.Equal(t, test.want, h.rate("c", ""))
		})
	}
}

func TestRequestRateIsTheMeanOfNewRequests(t *testing.T) {
	h := &history{}
	var got []reading
	for i, values := range [][2]int{{100, 10}, {100, 10}, {400, 12}, {50, 1}} {
		text := fmt.Sprintf(`# TYPE tuft_training_tokens_per_second histogram
tuft_training_tokens_per_second_bucket{le="+Inf"} %[2]d
tuft_training_tokens_per_second_sum %[1]d
tuft_training_tokens_per_second_count %[2]d
`, values[0], values[1])
		s, err := parseScrape(strings.NewReader(text), time.Unix(int64(2*i), 0), maxScrapeBytes)
		require.NoError(t, err)
		h.add(s)
		rates := takeSnapshot(h).requests
		require.Len(t, rates, 1)
		got = append(got, rates[0].rate)
	}
	// Nothing is known at first, nothing new has no mean, and a reset starts
	// anew.
	assert.Equal(t, []reading{{}, {}, known(150), {}}, got)
}
