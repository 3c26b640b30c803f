package model

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/api"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/gpus"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/runs"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/series"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/serving"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// missing returns what the page cannot show, why, and what changes it: also what components
// report.
func (all *parts) missing(state *api.State, reported []api.Missing, now time.Time) []api.Missing {
	rows := append(all.missingSenders(state, now), all.missingHardware(now)...)
	rows = append(rows, all.missingRuns(state)...)
	if !all.Content && all.models.Requests {
		rows = append(rows, gaps["content"])
	}
	rows = append(rows, all.Limits.Missing()...)
	if !all.overflow.IsZero() && now.Sub(all.overflow) <= series.GoneAfter {
		rows = append(rows, gaps["limit series"])
	}
	rows = append(rows, reported...)
	slices.SortStableFunc(rows, func(a, b api.Missing) int { return api.TrueFirst(a.Since != nil, b.Since != nil) })
	return rows
}

// missingHardware returns what is missing of GPUs.
func (all *parts) missingHardware(now time.Time) (rows []api.Missing) {
	read := false
	ordered := slices.SortedFunc(slices.Values(all.ofHosts.Streams), func(a, b *series.Stream) int {
		return cmp.Or(cmp.Compare(a.Labels.Host, b.Labels.Host), cmp.Compare(a.Labels.Own[0], b.Labels.Own[0]), cmp.Compare(a.Labels.Own[1], b.Labels.Own[1]))
	})
	for _, one := range ordered {
		if one.Value != 1 || !one.Live(now) {
			continue
		}
		read = read || one.Series == series.DriverState
		host, first := cmp.Or(one.Labels.Host, "this host"), one.Labels.Own[0]
		switch {
		case one.Series == series.DriverState && first != "ok":
			rows = append(rows, api.Missing{
				Key: api.Key("missing", "driver", one.Labels.Host), Kind: "driver", What: "GPUs of " + host,
				Why: "The NVIDIA driver is in the state " + first + ": " + cmp.Or(drivers[first].Why, drivers["failed"].Why) + ".", Fix: drivers[first].Fix,
			})
		case one.Series == series.Attribution && one.Labels.Own[1] == "denied":
			rows = append(rows, api.Missing{
				Key: api.Key("missing", "attribution", one.Labels.Host, first), Kind: "attribution", What: "Holders of GPUs on " + host,
				Why: "The collector may not read the source " + first + ".", Fix: sources[first],
			})
		}
	}
	if len(all.GPUs.All) == 0 && !read {
		rows = append(rows, gaps["gpu"])
	}
	return rows
}

// missingRuns returns what is missing of runs and ranks, one row for each cause.
func (all *parts) missingRuns(state *api.State) (rows []api.Missing) {
	var spans, hosts, tokens services
	var spansOf, ranksOf int64
	for _, id := range slices.SortedFunc(maps.Keys(all.Services.All), serving.CompareServices) {
		if n := all.Services.All[id].WithoutRun; n > 0 {
			spans, spansOf = append(spans, id.Name), spansOf+n
		}
	}
	for _, row := range state.Runs {
		if n := all.Runs.ByKey[row.Key].WithoutHost(); n > 0 {
			hosts, ranksOf = append(hosts, row.Service), ranksOf+int64(n)
		}
		if row.Why["token_rate"] != "" && row.Samples == nil {
			tokens = append(tokens, row.Service)
		}
	}
	owners := withoutOwner(state)
	who := mlattr.Mapped(owners, func(service string) string { return strconv.Quote(service) + ": <who>" })
	add := func(of services, things, kind, why, fix string, count int64) {
		if len(of) > 0 {
			m := gaps[kind]
			m.What, m.Why, m.Fix, m.Count = m.What+of.of(things), m.Why+why, cmp.Or(fix, m.Fix), count
			rows = append(rows, m)
		}
	}
	add(owners, "services", "owner", "", "ml_view: {owners: {"+api.List(who, api.MaxNamed)+"}}", 0)
	add(spans, "services", "run", "", "", rounded(spansOf))
	add(hosts, "runs", "rank_host", "The resource of "+api.Counted(int(ranksOf), "rank", "ranks")+" has no host.name.", "", ranksOf)
	// Runs are ordered by service.
	add(tokens, "runs", "step_tokens", runs.SizeOfAStep, runs.FixStepTokens(slices.Compact(slices.Clone(tokens))...), 0)
	return rows
}

// withoutOwner returns the services that have a problem and no owner. Where other runs
// have an owner, it returns those of all runs without one.
func withoutOwner(state *api.State) (services []string) {
	add := func(service, owner, team string) {
		if owner == "" && team == "" && service != "" {
			services = append(services, service)
		}
	}
	for _, n := range state.Needs {
		add(n.Service, n.Owner, n.Team)
	}
	if slices.ContainsFunc(state.Runs, func(r api.Run) bool { return r.Owner != "" }) {
		for _, r := range state.Runs {
			add(r.Service, r.Owner, r.Team)
		}
	}
	slices.Sort(services)
	return slices.Compact(services)
}

// services are those, or those of the runs, that one thing is missing of.
type services []string

// of names the services, such as "trainer" or "3 runs: agent, trainer (2)".
func (m services) of(things string) string {
	if len(m) == 1 {
		return m[0]
	}
	names := mlattr.Mapped(api.Grouped(m, func(service *string) string { return *service }), func(same []*string) string {
		if len(same) == 1 {
			return *same[0]
		}
		return *same[0] + " (" + strconv.Itoa(len(same)) + ")"
	})
	return strconv.Itoa(len(m)) + " " + things + ": " + api.List(names, api.MaxNamed)
}

// rounded returns a count with two digits that matter, so that it does not change
// with each span.
func rounded(n int64) int64 {
	unit := int64(1)
	for n >= 1000 && n/unit >= 100 {
		unit *= 10
	}
	return n / unit * unit
}

// noticeRows returns what collectors lose now: by ml_metrics, which knows its process.
func (all *parts) noticeRows(now time.Time) (rows []api.Missing) {
	for _, known := range notices {
		m := api.Missing{Key: "collectors " + known.Kind, Kind: known.Kind, Why: known.Why + " Their pages and logs say more."}
		var names []string
		for _, one := range all.ofHosts.Streams {
			at := series.Unix(one.Value)
			if one.Series != series.CollectorNotice || one.Labels.Own[0] != known.Kind || one.Sender == nil || at == nil || one.Old(now) || one.Gone {
				continue
			}
			names, m.Since = append(names, one.Sender.ID), api.Earlier(m.Since, at)
		}
		if len(names) > 0 {
			slices.Sort(names)
			m.What = known.What + ": " + api.List(names, api.MaxNamed)
			rows = append(rows, m)
		}
	}
	return rows
}

// missingSenders returns a row for each collector, and for each host of GPUs, that is
// silent. Of very many, the last row counts the others.
func (all *parts) missingSenders(state *api.State, now time.Time) (rows []api.Missing) {
	silent := mlattr.Where(slices.Values(state.Collectors), func(c api.SendingCollector) bool { return c.SilentSince != nil })
	rows = firstSilent("collectors", silent, func(one api.SendingCollector) api.Missing {
		return api.Missing{
			Key: "silent " + one.Key, Kind: "collector", What: "Data of the collector " + one.Title(),
			Why: "It has been silent since " + api.Clock(*one.SilentSince, now) + ". What only this collector sends shows its last values, then leaves.",
		}
	})
	rows = append(rows, all.noticeRows(now)...)
	return append(rows, firstSilent("hosts", all.GPUs.SilentHosts(now), func(one gpus.SilentHost) api.Missing {
		return api.Missing{
			Key: api.Key("silent host", one.Host), Kind: "host", What: "GPUs of " + cmp.Or(one.Host, "an unknown host"),
			Why: "No reading has come since " + api.Clock(one.Last, now) + ". Its GPUs show what they did then, those that nobody held for an hour.",
		}
	})...)
}

// maxNamedSilent limits the collectors, and the hosts, that are named as silent.
const maxNamedSilent = 16

// firstSilent returns a row for each of the first, and one for those that are not named.
func firstSilent[T any](things string, silent []T, row func(T) api.Missing) []api.Missing {
	rows := mlattr.Mapped(silent[:min(len(silent), maxNamedSilent)], row)
	if n := len(silent) - maxNamedSilent; n > 0 {
		rows = append(rows, api.Missing{
			Key: "silent " + things, Kind: things[:len(things)-1], What: "Data of more " + things, Count: int64(n),
			Why: "They are silent, too.",
		})
	}
	return rows
}

// maxStreamsOfHosts limits the streams of all hosts and collectors.
const maxStreamsOfHosts = 20_000
