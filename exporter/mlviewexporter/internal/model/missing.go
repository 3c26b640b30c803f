package model

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// fixStepTokens returns the configuration that gives the tokens of a training
// step.
func fixStepTokens(service string) string {
	return "ml_enrich: {training: [{service: " + strconv.Quote(service) + ", tokens_per_step: <tokens of one rank>}]}"
}

// missingRows returns what the page cannot show, why, and what changes it.
func (s *Store) missingRows(state *State, now time.Time) []Missing {
	rows := s.missingHardware(now)
	rows = append(rows, s.missingRuns(state)...)
	if !s.settings.Content && s.seen.requests {
		rows = append(rows, Missing{
			Key: "content", Kind: "content", What: "Long messages of errors", Fix: "ml_view: {content: true}",
			Why: "Content is withheld: only the first 200 characters of a message are held. Prompts, completions and arguments are never held.",
		})
	}
	rows = append(rows, s.reachedLimits(now)...)
	for _, component := range slices.Sorted(maps.Keys(s.missing)) {
		rows = append(rows, s.missing[component]...)
	}
	return rows
}

// driverFixes say what changes a state of the driver.
var driverFixes = map[string]struct{ why, fix string }{
	"library_missing":   {"there is no libnvidia-ml.so.1", "docker run --gpus all, or install the driver's libraries"},
	"driver_missing":    {"the kernel module is not loaded", "modprobe nvidia"},
	"version_mismatch":  {"library and kernel module have different versions", "restart the collector after the driver's upgrade"},
	"no_permission":     {"the device files cannot be opened", "give the collector's user access to /dev/nvidia*"},
	"unresponsive":      {"a call into the driver did not return", "look at the kernel's log: dmesg | grep -i xid"},
	"unsupported_build": {"the collector was built without cgo", "use the released binary for Linux"},
	"failed":            {"see the collector's log", ""},
}

// attributionFixes say what a source of attribution needs.
var attributionFixes = map[string]string{
	"cgroup":       "run the collector as root, or with the capabilities SYS_PTRACE and DAC_READ_SEARCH",
	"environ":      "run the collector as root, or with the capabilities SYS_PTRACE and DAC_READ_SEARCH",
	"podresources": "run the collector as root and mount /var/lib/kubelet/pod-resources",
}

// missingHardware returns what is missing of GPUs.
func (s *Store) missingHardware(now time.Time) []Missing {
	rows := []Missing{}
	drivers := false
	ordered := slices.SortedFunc(slices.Values(s.ofHosts), func(a, b *stream) int {
		return cmp.Or(cmp.Compare(a.labels.Host, b.labels.Host), cmp.Compare(a.labels.Own[0], b.labels.Own[0]), cmp.Compare(a.labels.Own[1], b.labels.Own[1]))
	})
	for _, one := range ordered {
		if one.value != 1 || !one.live(now) {
			continue
		}
		host, first := one.labels.Host, one.labels.Own[0]
		switch one.series {
		case DriverState:
			if drivers = true; first == "ok" {
				continue
			}
			known := driverFixes[first]
			rows = append(rows, Missing{
				Key: keyOf("missing", "driver", host), Kind: "driver", What: "GPUs of " + cmp.Or(host, "this host"),
				Why: "The NVIDIA driver is in the state " + first + ": " + cmp.Or(known.why, "see the collector's log") + ".", Fix: known.fix,
			})
		case Attribution:
			if one.labels.Own[1] != "denied" {
				continue
			}
			rows = append(rows, Missing{
				Key: keyOf("missing", "attribution", host, first), Kind: "attribution", What: "Holders of GPUs on " + cmp.Or(host, "this host"),
				Why: "The collector may not read the source " + first + ".", Fix: attributionFixes[first],
			})
		}
	}
	if len(s.gpus) == 0 && !drivers {
		rows = append(rows, Missing{
			Key: "gpu", Kind: "gpu", What: "GPUs", Why: "No receiver reports GPUs.",
			Fix: "receivers: {gpu: {}} and service: {pipelines: {metrics: {receivers: [otlp, gpu]}}}",
		})
	}
	return rows
}

// missingRuns returns what is missing of runs and ranks.
func (s *Store) missingRuns(state *State) (rows []Missing) {
	services := slices.SortedFunc(maps.Keys(s.seen.spansWithoutRun), func(a, b serviceID) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.namespace, b.namespace))
	})
	for _, of := range services[:min(len(services), maxNotices)] {
		rows = append(rows, Missing{
			Key: keyOf("missing", "run", of.namespace, of.name), Kind: "run", What: "The run of spans of " + of.name,
			Why: "Neither its spans nor its resource name a run.", Count: s.seen.spansWithoutRun[of],
			Fix: "OTEL_RESOURCE_ATTRIBUTES=ml.run.id=<id of the run>",
		})
	}
	for i := range state.Runs {
		row := &state.Runs[i]
		if len(rows) >= 2*maxNotices {
			break
		}
		if n := s.byKey[row.Key].withoutHost(); n > 0 {
			rows = append(rows, Missing{
				Key: keyOf("missing", "rank_host", row.Key), Kind: "rank_host", What: "The host of ranks of " + row.Service,
				Why: "The resource of " + counted(n, "rank", "ranks") + " has no host.name.", Count: int64(n),
				Fix: "OTEL_RESOURCE_ATTRIBUTES=host.name=$(hostname)",
			})
		}
		if row.Why["token_rate"] != "" {
			rows = append(rows, Missing{
				Key: keyOf("missing", "step_tokens", row.Key), Kind: "step_tokens", What: "Tokens per second of " + row.Service,
				Why: "Nobody sends the tokens of a step.", Fix: fixStepTokens(row.Service),
			})
		}
	}
	return rows
}

// withoutHost returns the number of ranks whose host is unknown.
func (r *run) withoutHost() (n int) {
	for _, one := range r.ranks {
		if one.host == "" && one.name != "" {
			n++
		}
	}
	return n
}

// limitFixes are the settings that raise the limits of lists.
var limitFixes = map[string]string{
	"runs": "ml_view: {max_runs: <more>}",
	"gpus": "ml_view: {max_gpus: <more>}",
}

// reachedLimits returns the limits of the page, and of ml_metrics, that hide
// something.
func (s *Store) reachedLimits(now time.Time) (rows []Missing) {
	for _, kind := range slices.Sorted(maps.Keys(s.refused)) {
		if n := len(s.refused[kind]); n > 0 {
			rows = append(rows, Missing{
				Key: "limit " + kind, Kind: "limit", What: strconv.Itoa(n) + " more " + kind,
				Why: "The page has reached its limit of " + kind + ".", Count: int64(n), Fix: limitFixes[kind],
			})
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(s.dropped)) {
		rows = append(rows, Missing{
			Key: "limit " + kind, Kind: "limit", What: "Data of more " + kind,
			Why: "The page has reached its limit of " + kind + ".", Count: s.dropped[kind],
		})
	}
	if !s.seen.overflow.IsZero() && now.Sub(s.seen.overflow) <= goneAfter {
		rows = append(rows, Missing{
			Key: "limit series", Kind: "limit", What: "Runs or series of their own",
			Why: "A limit before the page was reached, and data was counted together (otel.metric.overflow).",
			Fix: "ml_metrics: {max_runs: <more>, max_series: <more>} or ml_guard: {identities: {...}}",
		})
	}
	return rows
}
