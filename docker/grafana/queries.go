package main

import "strings"

// Variables as they stand in queries.
const (
	ofService  = `job=~"$service"`
	ofRun      = `job=~"$service",ml_run_id=~"$run"`
	ofGPU      = `host_name=~"$host",hw_id=~"$gpu"`
	ofInstance = `instance=~"$instance"`
)

// plainService adds the label service, the name that traces have: job has the
// service's name space in front of it.
func plainService(expr string) string {
	return `label_replace(` + expr + `, "service", "$1", "job", "(?:.*/)?(.*)")`
}

// recent is how long a run stays in the lists after its last step.
const recent = "900"

// live is the runs of the chosen services that are lists' lines: those that
// ended or fell silent leave, of which a fine-tuning service has many.
const live = `(run:state{` + ofService + `,ml_run_state=~"running|stalled|unknown"} or run:state{` + ofService + `} and on (ml_run_id) time() - max by (ml_run_id) (ml_run_last_step_timestamp_seconds) < ` + recent + `)`

// ofLive leaves the runs that are in the lists.
func ofLive(expr string) string { return expr + ` and on (ml_run_id) ` + live }

// whileAtWork leaves the runs that train, or should. One that ended or fell
// silent has rates of 0 for an hour, which say nothing.
func whileAtWork(expr string) string {
	return expr + ` and on (ml_run_id) run:state{ml_run_state=~"running|stalled"}`
}

// owner adds the label owner: who the workloads of a GPU belong to, as far as
// the machine knows it.
func owner(expr string) string {
	for _, part := range []struct{ label, text, from string }{
		{"owner_ns", "namespace $1", "k8s_namespace_name"},
		{"owner_job", "Slurm job $1", "slurm_job_id"},
		{"owner_uid", "user $1", "user_id"},
	} {
		expr = `label_replace(` + expr + `, "` + part.label + `", "` + part.text + `", "` + part.from + `", "(.+)")`
	}
	expr = `label_join(` + expr + `, "owner", "  ", "owner_ns", "owner_job", "owner_uid")`
	return `label_replace(` + expr + `, "owner", "$1", "owner", " *(.*?) *")`
}

// workloads is a series of the GPUs' workloads, each once: until a workload's
// run is known its series has none, and the exporter goes on showing that one
// for metric_expiration.
func workloads(metric, selector string) string {
	with := func(run string) string { return metric + `{` + strings.TrimPrefix(selector+`,`, `,`) + run + `}` }
	return `(` + with(`ml_run_id!=""`) + ` or (` + with(`ml_run_id=""`) +
		` unless on (host_name, hw_id, ml_rank_global, service_name, slurm_job_id, container_id, k8s_pod_name, user_id) ` + with(`ml_run_id!=""`) + `))`
}

// orZero is 0 where nothing is to be counted.
func orZero(expr string) string { return expr + ` or vector(0)` }

// quantile is that of a histogram, by labels.
func quantile(q, metric, selector, by string) string {
	return `histogram_quantile(` + q + `, sum by (le, ` + by + `) (rate(` + metric + `_bucket{` + selector + `}[$__rate_interval])))`
}

// perSecond is a counter's rate, by labels.
func perSecond(metric, selector, by string) string {
	return `sum by (` + by + `) (rate(` + metric + `{` + selector + `}[$__rate_interval]))`
}

// inRange is what a counter gained in the time that is looked at, by labels,
// where it gained something. A series that was not there before counts whole: it
// begins with its first event, which increase does not see.
func inRange(metric, selector, by string) string {
	series := metric
	if selector != "" {
		series += `{` + selector + `}`
	}
	return `sum by (` + by + `) ((increase(` + series + `[$__range]) and ` + series + ` offset $__range or ` + series + ` unless ` + series + ` offset $__range) > 0)`
}
