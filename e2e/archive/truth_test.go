package archive

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// truth has what mlgen's log says, by keys such as run/rank. The runs are those of
// incidents, whose spans have canonical names.
type truth struct {
	spans []*sentlog.Span
	// newest is when the newest span ended, in nanoseconds.
	newest int64
}

// text returns a value of a span or of its resource as text.
func text(s *sentlog.Span, key string) string {
	if value, ok := s.Attributes[key]; ok {
		return fmt.Sprint(value)
	}
	if value, ok := s.Resource[key]; ok {
		return fmt.Sprint(value)
	}
	return ""
}

func seconds(ns int64) float64 { return float64(ns) / 1e9 }

// isTrained reports whether a span is of a run of an incident.
func isTrained(s *sentlog.Span) bool { return text(s, "ml.run.id") != "" && text(s, "ml.phase") != "" }

// steps returns the ends of the optimizer's spans, sorted, in nanoseconds.
func (tr truth) steps(key func(*sentlog.Span) string) map[string][]int64 {
	ends := map[string][]int64{}
	for _, s := range tr.spans {
		if isTrained(s) && text(s, "ml.phase") == "optimizer" {
			ends[key(s)] = append(ends[key(s)], s.EndUnixNano)
		}
	}
	for _, of := range ends {
		slices.Sort(of)
	}
	return ends
}

func rankOf(s *sentlog.Span) string { return text(s, "ml.run.id") + "/" + text(s, "ml.rank.global") }

// stepTimes returns the number of steps of each rank, and p50, p95 and p99 of the time
// between steps of an attempt.
func (tr truth) stepTimes() map[string][]float64 {
	between, count := map[string][]float64{}, map[string]float64{}
	attempt := func(s *sentlog.Span) string { return rankOf(s) + "|" + text(s, "ml.run.attempt") }
	for key, ends := range tr.steps(attempt) {
		rank := key[:len(key)-2]
		count[rank] += float64(len(ends))
		for i := 1; i < len(ends); i++ {
			between[rank] = append(between[rank], seconds(ends[i]-ends[i-1]))
		}
	}
	times := map[string][]float64{}
	for rank, of := range between {
		slices.Sort(of)
		times[rank] = []float64{count[rank], quantile(of, 0.5), quantile(of, 0.95), quantile(of, 0.99)}
	}
	return times
}

// quantile interpolates between sorted values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := math.Floor(at)
	high := min(int(low)+1, len(sorted)-1)
	return sorted[int(low)] + (at-low)*(sorted[high]-sorted[int(low)])
}

// ownTimes returns the mean time of a step of each rank without its backward pass, and
// its multiple of the run's median.
func (tr truth) ownTimes() map[string][]float64 {
	sum, steps, ofRun := map[string]float64{}, map[string]float64{}, map[string][]float64{}
	for _, s := range tr.spans {
		switch phase := text(s, "ml.phase"); {
		case !isTrained(s):
		case phase == "optimizer":
			steps[rankOf(s)]++
			fallthrough
		case phase == "data_load" || phase == "forward":
			sum[rankOf(s)] += seconds(s.EndUnixNano - s.StartUnixNano)
		}
	}
	run := func(rank string) string { return rank[:slices.Index([]byte(rank), '/')] }
	for rank := range sum {
		sum[rank] /= steps[rank]
		ofRun[run(rank)] = append(ofRun[run(rank)], sum[rank])
	}
	own := map[string][]float64{}
	for rank, mean := range sum {
		of := ofRun[run(rank)]
		slices.Sort(of)
		own[rank] = []float64{mean, mean / quantile(of, 0.5)}
	}
	return own
}

// phases returns the seconds and the share of each run, minute and phase.
func (tr truth) phases() map[string][]float64 {
	sum, all := map[string]float64{}, map[string]float64{}
	minute := func(s *sentlog.Span) string {
		return text(s, "ml.run.id") + "/" + time.Unix(0, s.StartUnixNano).UTC().Format("2006-01-02 15:04:00")
	}
	for _, s := range tr.spans {
		if isTrained(s) && text(s, "ml.phase") != "train" {
			length := seconds(s.EndUnixNano - s.StartUnixNano)
			sum[minute(s)+"/"+text(s, "ml.phase")] += length
			all[minute(s)] += length
		}
	}
	shares := map[string][]float64{}
	for _, s := range tr.spans {
		if key := minute(s) + "/" + text(s, "ml.phase"); sum[key] > 0 {
			shares[key] = []float64{sum[key], sum[key] / all[minute(s)]}
		}
	}
	return shares
}

// firstTokens returns the number of requests of each model, and p50, p95 and p99 of the
// time to the first token.
func (tr truth) firstTokens() map[string][]float64 {
	times := map[string][]float64{}
	for _, s := range tr.spans {
		if first, ok := s.Attributes["gen_ai.response.time_to_first_chunk"].(float64); ok {
			times[text(s, "gen_ai.response.model")] = append(times[text(s, "gen_ai.response.model")], first)
		}
	}
	answers := map[string][]float64{}
	for model, of := range times {
		slices.Sort(of)
		answers[model] = []float64{float64(len(of)), quantile(of, 0.5), quantile(of, 0.95), quantile(of, 0.99)}
	}
	return answers
}

// failures counts failed spans without a failed child, by service. The end of a data
// loader is none.
func (tr truth) failures() map[string][]float64 {
	above := map[string]bool{}
	for _, s := range tr.spans {
		if s.Status.Code == "error" {
			above[s.TraceID+s.ParentSpanID] = true
		}
	}
	count := map[string]float64{}
	for _, s := range tr.spans {
		if s.Status.Code == "error" && !above[s.TraceID+s.SpanID] && !endsLoader(s) {
			count[text(s, "service.name")]++
		}
	}
	return lists(count)
}

func endsLoader(s *sentlog.Span) bool {
	return slices.ContainsFunc(s.Events, func(e sentlog.Event) bool { return e.Attributes["exception.type"] == "StopIteration" })
}

// restarts returns the restarts of each run, the hours of its ranks between two attempts,
// and the steps that it repeated.
func (tr truth) restarts() map[string][]float64 {
	type attempt struct{ rank, number string }
	first, last := map[attempt]int64{}, map[attempt]int64{}
	runs := map[string][]float64{}
	for _, s := range tr.spans {
		if !isTrained(s) || text(s, "ml.phase") != "optimizer" {
			continue
		}
		key := attempt{rankOf(s), text(s, "ml.run.attempt")}
		if begun, ok := first[key]; !ok || s.EndUnixNano < begun {
			first[key] = s.EndUnixNano
		}
		last[key] = max(last[key], s.EndUnixNano)
	}
	for key, begun := range first {
		if ended, ok := last[attempt{key.rank, "0"}]; ok && key.number == "1" {
			run := key.rank[:slices.Index([]byte(key.rank), '/')]
			if runs[run] == nil {
				runs[run] = []float64{1, 0, 0}
			}
			runs[run][1] += seconds(begun-ended) / 3600
		}
	}
	return runs
}

// gaps returns the longest time of each run between two steps of any rank, and the time
// from its last step to the newest span.
func (tr truth) gaps() map[string][]float64 {
	gaps := map[string][]float64{}
	for run, ends := range tr.steps(func(s *sentlog.Span) string { return text(s, "ml.run.id") }) {
		longest := int64(0)
		for i := 1; i < len(ends); i++ {
			longest = max(longest, ends[i]-ends[i-1])
		}
		gaps[run] = []float64{seconds(longest), seconds(tr.newest - ends[len(ends)-1])}
	}
	return gaps
}

// lists makes a list of each value.
func lists(values map[string]float64) map[string][]float64 {
	of := map[string][]float64{}
	for key, value := range values {
		of[key] = []float64{value}
	}
	return of
}
