//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
)

// scraped is a scrape's duration, the processor time and the memory that the collector
// has allocated for it and for telling so, and its size.
type scraped struct {
	took, spent      time.Duration
	allocated, bytes int64
}

// scrapes measures scrapes of a number of series and prints the one of median time.
func scrapes(ctx context.Context, o options, out io.Writer) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	directory, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(directory) }()
	o.variants = filepath.Join(o.variants, "scrape")
	o.environment += ",PROMETHEUS_ENDPOINT=" + address
	o.pprof = true // the totals of memory are read there
	v, err := startVariant(ctx, o, loads["points"], "prometheus", anyPort, directory)
	if err != nil {
		return err
	}
	defer func() { _ = v.stop() }()
	for first := 0; first < o.series; first += itemsOfRequest {
		request, err := pmetricotlp.NewExportRequestFromMetrics(seriesRequest(first, min(itemsOfRequest, o.series-first))).MarshalProto()
		if err != nil {
			return err
		}
		if err := v.send(ctx, request); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(out, "| series | encoding | time | processor time | garbage MB | MB sent |\n|---|---|---|---|---|---|"); err != nil {
		return err
	}
	for _, encoding := range []string{"identity", "gzip"} {
		var all []scraped
		for range o.rounds {
			one, err := v.scrape(ctx, "http://"+address+"/metrics", encoding)
			if err != nil {
				return err
			}
			all = append(all, one)
		}
		slices.SortFunc(all, func(a, b scraped) int { return int(a.took - b.took) })
		m := all[len(all)/2]
		if _, err := fmt.Fprintf(out, "| %d | %s | %v | %v | %.0f | %.1f |\n", o.series, encoding,
			m.took.Round(time.Millisecond), m.spent.Round(time.Millisecond), float64(m.allocated)/1e6, float64(m.bytes)/1e6); err != nil {
			return err
		}
	}
	return nil
}

// scrape asks as Prometheus does.
func (v *variant) scrape(ctx context.Context, url, encoding string) (s scraped, err error) {
	had, err := v.allocated(ctx)
	if err != nil {
		return s, err
	}
	before, err := v.processorTime()
	if err != nil {
		return s, err
	}
	start := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return s, err
	}
	request.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	request.Header.Set("Accept-Encoding", encoding)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return s, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return s, fmt.Errorf("%s: %s", url, answer.Status)
	}
	if s.bytes, err = io.Copy(io.Discard, answer.Body); err != nil {
		return s, err
	}
	s.took = time.Since(start)
	after, err := v.processorTime()
	if err != nil {
		return s, err
	}
	has, err := v.allocated(ctx)
	s.spent, s.allocated = after-before, has-had
	return s, err
}

var totalAlloc = regexp.MustCompile(`(?m)^# TotalAlloc = (\d+)$`)

// allocated returns the bytes that the collector has allocated since it started.
func (v *variant) allocated(ctx context.Context) (int64, error) {
	text, err := v.fetch(ctx, "heap?debug=1")
	if err != nil {
		return 0, err
	}
	found := totalAlloc.FindSubmatch(text)
	if found == nil {
		return 0, errors.New("the profile of memory has no total")
	}
	return strconv.ParseInt(string(found[1]), 10, 64)
}

// seriesRequest has gauges of nine attributes, each point a series.
func seriesRequest(first, points int) pmetric.Metrics {
	md := pmetric.NewMetrics()
	rm := md.ResourceMetrics().AppendEmpty()
	put(rm.Resource().Attributes(), meters[1].resource, "")
	metrics := rm.ScopeMetrics().AppendEmpty().Metrics()
	var m pmetric.Metric
	for i := range points {
		if i%100 == 0 {
			m = metrics.AppendEmpty()
			m.SetName("series." + strconv.Itoa((first+i)%997))
			m.SetEmptyGauge()
		}
		point := m.Gauge().DataPoints().AppendEmpty()
		put(point.Attributes(), meters[2].attributes, strconv.Itoa(first+i))
		point.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
		point.SetDoubleValue(float64(i))
	}
	return md
}
