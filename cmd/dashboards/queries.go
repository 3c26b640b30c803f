package main

import "strings"

// Variables as they stand in queries.
const (
	ofService  = `job=~"$service"`
	ofRun      = `job=~"$service",ml_run_id=~"$run"`
	ofGPU      = `host_name=~"$host",hw_id=~"$gpu"`
	ofInstance = `instance=~"$instance"`
)

// plainService adds the label service, the service name in traces: job has the
// namespace in front of it.
func plainService(expr string) string {
	return `label_replace(` + expr + `, "service", "$1", "job", "(?:.*/)?(.*)")`
}

// recent is how long a run stays in the lists after its last step.
const recent = "900"

// live selects the runs of the chosen services that the lists show. Ended and
// silent runs disappear, because a fine-tuning service has many.
const live = `(run:state{` + ofService + `,ml_run_state=~"running|stalled|unknown"} or run:state{` + ofService + `} and on (ml_run_id) time() - max by (ml_run_id) (ml_run_last_step_timestamp_seconds) < ` + recent + `)`

// ofLive restricts a query to the runs in the lists.
func ofLive(expr string) string { return expr + ` and on (ml_run_id) ` + live }

// whileAtWork restricts a query to runs that train or should train. An ended or
// silent run would have rates of 0 for an hour.
func whileAtWork(expr string) string {
	return expr + ` and on (ml_run_id) run:state{ml_run_state=~"running|stalled"}`
}

// owner adds the label owner, the owner of a GPU's workload as far as it is
// known.
func owner(expr string) string {
	for _, part := range []struct{ label, text, from string }{
		{"owner_ns", "namespace $1", "k8s_namespace_name"},
		{"owner_job", "Slurm job $1", "slurm_job_id"},
		{"owner_uid", "user $1", "user_id"},
		{"owner_uid", "user $1", "user_name"},
	} {
		expr = `label_replace(` + expr + `, "` + part.label + `", "` + part.text + `", "` + part.from + `", "(.+)")`
	}
	expr = `label_join(` + expr + `, "owner", "  ", "owner_ns", "owner_job", "owner_uid")`
	return `label_replace(` + expr + `, "owner", "$1", "owner", " *(.*?) *")`
}

// workloads selects the series of GPU workloads, each once. When the run of a
// workload becomes known, the exporter shows its series without a run for
// metric_expiration more.
func workloads(metric, selector string) string {
	with := func(run string) string { return metric + `{` + strings.TrimPrefix(selector+`,`, `,`) + run + `}` }
	return `(` + with(`ml_run_id!=""`) + ` or (` + with(`ml_run_id=""`) +
		` unless on (host_name, hw_id, ml_rank_global, service_name, slurm_job_id, container_id, k8s_pod_name, user_id) ` + with(`ml_run_id!=""`) + `))`
}

// newest restricts a gauge of runs to the collectors that none overrules, where
// several have reported the run.
func newest(expr string) string {
	return expr + ` unless ignoring (ml_loss_scope, ml_task, ml_metric, ml_job_id, ml_rank_global, host_name) run_writer:overruled`
}

// once has a gauge of processes once, where several collectors have reported it.
// labels are those of its own.
func once(metric, selector, labels string) string {
	return `max by (job, service_instance_id, ml_run_id, ml_job_id, ml_rank_global, host_name, ` + labels + `) (` + metric + `{` + selector + `})`
}

// orZero returns 0 if a query has no result.
func orZero(expr string) string { return expr + ` or vector(0)` }

// quantile returns a quantile of a histogram, by labels.
func quantile(q, metric, selector, by string) string {
	return `histogram_quantile(` + q + `, sum by (le, ` + by + `) (rate(` + metric + `_bucket{` + selector + `}[$__rate_interval])))`
}

// perSecond returns a counter's rate, by labels.
func perSecond(metric, selector, by string) string {
	return `sum by (` + by + `) (rate(` + metric + `{` + selector + `}[$__rate_interval]))`
}

// inRange returns a counter's increase in the shown time range, by labels,
// where it is above 0. A new series counts with its value, because increase()
// does not count the event that creates it.
func inRange(metric, selector, by string) string { return inRangeOf(metric, selector, by, "") }

// xidsInRange returns the increase of the XID errors in the shown time range. The
// counter of a GPU that another collector reports now is not new.
func xidsInRange(selector, by string) string {
	return inRangeOf("nvidia_gpu_xid_errors_total", selector, by, " on (host_name, hw_id, nvidia_gpu_xid_code)")
}

func inRangeOf(metric, selector, by, same string) string {
	series := metric
	if selector != "" {
		series += `{` + selector + `}`
	}
	return `sum by (` + by + `) ((increase(` + series + `[$__range]) and ` + series + ` offset $__range or ` + series + ` unless` + same + ` ` + series + ` offset $__range) > 0)`
}
