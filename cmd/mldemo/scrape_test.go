package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func fixedNow() time.Time { return firstScrape }

func serveText(t *testing.T, handle http.HandlerFunc) *scraper {
	t.Helper()
	server := httptest.NewServer(handle)
	t.Cleanup(server.Close)
	return newScraper(strings.TrimPrefix(server.URL, "http://"), fixedNow)
}

// answer writes a body; a client that has gone is the client's matter.
func answer(w io.Writer, body string) { _, _ = io.WriteString(w, body) }

func TestScrapeKeepsWhatIsShown(t *testing.T) {
	s, err := serveText(t, func(w http.ResponseWriter, r *http.Request) {
		assert.Equal(t, "/metrics", r.URL.Path)
		answer(w, `# TYPE ml_steps_total counter
ml_steps_total{job="a",ml_run_id=""} 3
# TYPE ml_loss gauge
ml_loss{job="a"} NaN
ml_loss{job="b"} +Inf
# TYPE other gauge
other 1
# TYPE tuft_sampling_tokens_per_second histogram
tuft_sampling_tokens_per_second_bucket{le="1"} 1
tuft_sampling_tokens_per_second_bucket{le="+Inf"} 2
tuft_sampling_tokens_per_second_sum 5.5
tuft_sampling_tokens_per_second_count 2
# TYPE ml_epoch summary
ml_epoch{quantile="0.5"} 1
ml_epoch_sum 1
ml_epoch_count 1
ml_batches_total 4
`)
	}).scrape(context.Background())
	require.NoError(t, err)
	job := map[string]string{"job": "a"}
	nothing := map[string]string{}
	assert.Equal(t, &scrape{at: firstScrape, families: map[string]map[string]sample{
		"ml_steps_total":                        {seriesID(job): {labels: job, value: 3}},
		"ml_batches_total":                      {"": {labels: nothing, value: 4}},
		"tuft_sampling_tokens_per_second_sum":   {"": {labels: nothing, value: 5.5}},
		"tuft_sampling_tokens_per_second_count": {"": {labels: nothing, value: 2}},
	}}, s)
}

func TestScrapeThatFails(t *testing.T) {
	for name, test := range map[string]struct {
		handle http.HandlerFunc
		says   string
	}{
		"an error code": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }, "answered 503"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusFound)
		}, "answered 302"},
		"no metrics": {func(w http.ResponseWriter, _ *http.Request) { answer(w, "<html>") }, "text format parsing error"},
		"half of it": {func(w http.ResponseWriter, _ *http.Request) { answer(w, "ml_steps_total 1\nml_steps_total{a=") }, "text format parsing error"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serveText(t, test.handle).scrape(context.Background())
			assert.ErrorContains(t, err, test.says)
		})
	}
}

func TestScrapeThatIsTooLarge(t *testing.T) {
	const text = "ml_steps_total 1\n"
	_, err := parseScrape(strings.NewReader(text), firstScrape, int64(len(text)))
	require.NoError(t, err)
	_, err = parseScrape(strings.NewReader(text), firstScrape, int64(len(text))-1)
	assert.ErrorContains(t, err, "larger than 16 bytes")
}

func TestScrapeIsBounded(t *testing.T) {
	var text strings.Builder
	text.WriteString("# TYPE ml_steps_total counter\n")
	for i := range maxSeries + 5 {
		fmt.Fprintf(&text, "ml_steps_total{ml_run_id=\"%d\"} 1\n", i)
	}
	s, err := parseScrape(strings.NewReader(text.String()), firstScrape, maxScrapeBytes)
	require.NoError(t, err)
	assert.Len(t, s.families["ml_steps_total"], maxSeries)
	assert.Equal(t, 5, s.dropped)
	h := &history{}
	h.add(s)
	lines := strings.Join(screen(pageOf(takeSnapshot(h), firstScrape), size{width: 80}), "\n")
	assert.Contains(t, lines, "5 series beyond the limit")
	assert.Contains(t, lines, fmt.Sprintf("… and %d more", maxSeries-mostRows))
}

func TestSeriesIDKeepsLabelSetsApart(t *testing.T) {
	assert.NotEqual(t, seriesID(map[string]string{"a": "1", "b": "2"}), seriesID(map[string]string{"a": "11:b1:2"}))
	assert.NotEqual(t, seriesID(map[string]string{"a": "b", "c": ""}), seriesID(map[string]string{"a": "b"}))
}
