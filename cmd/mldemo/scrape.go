package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

const (
	// maxScrapeBytes limits the size of a scrape.
	maxScrapeBytes = 16 << 20
	// maxSeries limits the series of shown metrics that are kept.
	maxSeries = 20_000
	// scrapeTimeout limits the duration of a scrape, which must fit between two
	// refreshes.
	scrapeTimeout = 1500 * time.Millisecond
)

// sample is one series' value at one scrape.
type sample struct {
	// labels are the non-empty labels: to Prometheus, an empty label is a
	// missing one.
	labels map[string]string
	value  float64
}

// scrape is the content of the metrics endpoint at one time.
type scrape struct {
	at time.Time
	// families maps metric names to series by identity. The sum and count of a
	// histogram are separate families, named as in the text format.
	families map[string]map[string]sample
	// dropped is the number of series beyond maxSeries.
	dropped int
}

// sorted returns the series of a metric in the order of their identities, so
// that equal scrapes give equal screens.
func (s *scrape) sorted(name string) []identified {
	family := s.families[name]
	series := make([]identified, 0, len(family))
	for _, id := range slices.Sorted(maps.Keys(family)) {
		series = append(series, identified{name: name, id: id, sample: family[id]})
	}
	return series
}

// identified is a sample with the identity of its series.
type identified struct {
	name string
	id   string
	sample
}

// scraper reads a metrics endpoint.
type scraper struct {
	url    string
	client *http.Client
	now    func() time.Time
}

// newScraper returns a scraper for a host and port. It uses no proxy and
// follows no redirect, because the demo started this collector itself.
func newScraper(address string, now func() time.Time) *scraper {
	return &scraper{url: "http://" + address + "/metrics", client: plainClient(scrapeTimeout), now: now}
}

// plainClient returns an HTTP client without proxy, redirects and keep-alive.
func plainClient(timeout time.Duration) *http.Client {
	return &http.Client{
		Timeout:   timeout,
		Transport: &http.Transport{Proxy: nil, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
}

// scrape reads the endpoint once.
func (s *scraper) scrape(ctx context.Context) (_ *scrape, err error) {
	//nolint:gosec // The address is the user's own, as for any client.
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url, http.NoBody)
	if err != nil {
		return nil, err
	}
	// The plain text format is the one that expfmt parses.
	request.Header.Set("Accept", "text/plain;version=0.0.4")
	response, err := s.client.Do(request) //nolint:gosec // The address is the user's own, as for any client.
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answered %d", s.url, response.StatusCode)
	}
	return parseScrape(response.Body, s.now(), maxScrapeBytes)
}

// parseScrape reads the Prometheus text format and keeps the shown metrics. It
// returns an error for a text that cannot be parsed or is larger than limit
// bytes: a partial scrape would look like series that have ended.
func parseScrape(text io.Reader, at time.Time, limit int64) (*scrape, error) {
	limited := &io.LimitedReader{R: text, N: limit + 1}
	// An exporter may be configured not to escape UTF-8 names; they are
	// accepted but not shown.
	parser := expfmt.NewTextParser(model.UTF8Validation)
	parsed, err := parser.TextToMetricFamilies(limited)
	if limited.N <= 0 {
		return nil, fmt.Errorf("the metrics are larger than %d bytes", limit)
	}
	if err != nil {
		return nil, err
	}
	s := &scrape{at: at, families: map[string]map[string]sample{}}
	kept := 0
	for _, name := range slices.Sorted(maps.Keys(parsed)) {
		for _, metric := range parsed[name].GetMetric() {
			for _, v := range values(name, metric) {
				if !shownMetrics[v.name] || math.IsNaN(v.value) || math.IsInf(v.value, 0) {
					continue
				}
				if kept == maxSeries {
					s.dropped++
					continue
				}
				kept++
				s.add(v.name, metric.GetLabel(), v.value)
			}
		}
	}
	return s, nil
}

type namedValue struct {
	name  string
	value float64
}

// values returns the values of a series, by the names of the text format.
func values(name string, metric *dto.Metric) []namedValue {
	switch {
	case metric.Counter != nil:
		return []namedValue{{name, metric.Counter.GetValue()}}
	case metric.Gauge != nil:
		return []namedValue{{name, metric.Gauge.GetValue()}}
	case metric.Untyped != nil:
		return []namedValue{{name, metric.Untyped.GetValue()}}
	case metric.Histogram != nil:
		count := float64(metric.Histogram.GetSampleCount())
		if metric.Histogram.SampleCountFloat != nil {
			count = metric.Histogram.GetSampleCountFloat()
		}
		return []namedValue{{name + "_sum", metric.Histogram.GetSampleSum()}, {name + "_count", count}}
	default:
		return nil
	}
}

func (s *scrape) add(name string, pairs []*dto.LabelPair, value float64) {
	labels := make(map[string]string, len(pairs))
	for _, pair := range pairs {
		if pair.GetValue() != "" {
			labels[pair.GetName()] = pair.GetValue()
		}
	}
	if s.families[name] == nil {
		s.families[name] = map[string]sample{}
	}
	s.families[name][seriesID(labels)] = sample{labels: labels, value: value}
}

// seriesID returns one string for a label set. Lengths separate the parts, so
// that no value can imitate another label.
func seriesID(labels map[string]string) string {
	var id strings.Builder
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		fmt.Fprintf(&id, "%d:%s%d:%s", len(name), name, len(labels[name]), labels[name])
	}
	return id.String()
}
