package main

const toDesk = `A failed span becomes a folder on the collector's machine, below ` + "`directory`" + ` of ` + "`repro_gen`" + `:

` + "```" + `
<directory>/<fingerprint>/group.json         count, first and last time, services
<directory>/<fingerprint>/<time>-<trace>-<span>/repro.py  trace.json  report.md
` + "```" + `

1. Click a diamond in **Errors per second**, or **Traces of the operation** in the table.
2. In Jaeger, the failed span has the folder's name in ` + "`repro.artifact.path`" + `.
3. Run ` + "`python3 repro.py`" + ` there. Exit 1: reproduced. 0: not reproduced. 4: nobody permitted it, and the script names the flag that does. 5: cannot run here.

The folder appears ` + "`sibling_wait`" + ` after the failure. A span with only ` + "`repro.artifact.fingerprint`" + ` has no folder: see **No artifact was written**.
Grafana cannot show the files. They contain your program's arguments and stay on that machine.`

func errorsBoard() *board {
	const chosen = ofService
	toJaeger := toTraces("Traces of the operation", ofColumn("Service"), "ml.operation", ofColumn("Operation"))
	total := `traces_span_metrics_calls_total{` + chosen + `}`
	failed := `traces_span_metrics_calls_total{` + chosen + `,status_code="STATUS_CODE_ERROR"}`
	return &board{
		Name: "errors", Title: "Errors and reproductions", From: "now-1h",
		About: "Failures, their traces, and the failures that can be reproduced on another machine.",
		Variables: []variable{
			{"service", "Service", "The program: service.name, preceded by service.namespace.", "traces_span_metrics_calls_total", "job"},
		},
		Marks: []mark{
			{Name: "Alerts", Color: "red", Expr: `max by (alertname, severity, job) (ALERTS{alertstate="firing",` + chosen + `})`},
		},
		Rows: []row{
			{Height: 4, Panels: []panel{
				number{heading: heading{"Errors/s", "Failures that ml_metrics counts, from ml_errors. If several spans of a trace report one failure, it counts once.", 4, "none"}, Decimals: 2,
					Expr: `sum(rate(ml_errors_total{` + chosen + `}[$__rate_interval]))`, Past: true, Steps: []step{{0, neutral}}, None: "none"},
				number{heading: heading{"Spans that fail", "The fraction of all spans with status Error, of traces_span_metrics_calls. Errors that a client catches and reports as OK are not included.", 4, "percentunit"}, Decimals: 2,
					Expr: `(sum(rate(` + failed + `[$__rate_interval])) or vector(0)) / (sum(rate(` + total + `[$__rate_interval])) > 0)`, Past: true, Steps: []step{{0, good}, {0.01, warning}, {0.05, bad}}},
				number{heading: heading{"Groups of failures", "Groups that repro_gen knows: failures with the same service, root cause class, target and innermost frames.", 4, "none"},
					Expr: `sum(otelcol_processor_repro_gen_groups)`, Steps: []step{{0, neutral}}},
				number{heading: heading{"Artifacts written", "In this time. Each can be run.", 4, "none"},
					Expr: orZero(`sum(` + inRange("otelcol_processor_repro_gen_written", "", "instance") + `)`), Steps: []step{{0, neutral}}},
				number{heading: heading{"Failures without artifact", "Failures in this time that were counted but got no artifact because of a limit, a full disk or a full queue. The reasons are below.", 4, "none"},
					Expr: orZero(`sum(` + inRange("otelcol_processor_repro_gen_dropped", "", "instance") + `)`), Steps: []step{{0, good}, {1, warning}}},
				number{heading: heading{"Size on disk", "Of all artifacts. retention limits it.", 4, "bytes"}, Decimals: 1,
					Expr: `sum(otelcol_processor_repro_gen_disk_usage)`, Steps: []step{{0, neutral}}},
			}},
			{Title: "What fails", Height: 9, Panels: []panel{
				graph{heading: heading{"Errors per second", "By program and type. A diamond is one failure: click it for its trace.", 12, "none"},
					Queries: []query{{Expr: perSecond("ml_errors_total", chosen, "job, error_type"), Legend: "{{job}} {{error_type}}", Exemplars: true}},
					Links:   []link{{"Its operations", "/d/" + uid("errors") + "?var-service=" + ofLabel("job") + "&${__url_time_range}"}}},
				table{heading: heading{"Errors", "In this time, by operation and type. _OTHER is an error whose type the client does not report. The link searches Jaeger for the operation; failures are marked there.", 12, "short"},
					SortBy: "Errors", None: "none",
					Queries: []string{`sum by (service, ml_operation, error_type) (` + plainService(inRange("ml_errors_total", chosen, "job, ml_operation, error_type")) + `)`},
					Columns: []column{
						{Field: "service", Name: "Service", Width: 190},
						{Field: "ml_operation", Name: "Operation", Width: 170, Links: []link{toJaeger}},
						{Field: "error_type", Name: "Type", Width: 230, Links: []link{toJaeger}},
						{Field: "A", Name: "Errors", Unit: "none", Steps: []step{{0, quiet}}},
					}},
			}},
			{Height: 8, Panels: []panel{
				graph{heading: heading{"Operations that fail", "The fraction of an operation's spans with status Error, for operations that failed in this time.", 8, "percentunit"},
					Queries: []query{{Expr: `sum by (job, ml_operation) (rate(` + failed + `[$__rate_interval])) / sum by (job, ml_operation) (rate(` + total + `[$__rate_interval]))`, Legend: "{{job}} {{ml_operation}}"}}},
				bars{heading: heading{"Workers", "In this time: crashed workers, opened circuit breakers, and alerts of a client's health monitor.", 8, "none"}, Counts: true,
					Queries: []query{
						{Expr: inRange("ml_worker_crashes_total", chosen, "job, type"), Legend: "{{job}} died: {{type}}"},
						{Expr: inRange("ml_breaker_openings_total", chosen, "job, pool"), Legend: "{{job}} breaker opened"},
						{Expr: inRange("ml_health_alerts_total", chosen, "job, type"), Legend: "{{job}} alert: {{type}}"},
					},
					Steps: []step{{0, warning}, {10, bad}}},
				bars{heading: heading{"Errors of GPUs (XID)", "In this time, of all hosts.", 8, "none"}, Counts: true,
					Queries: []query{{Expr: xidsInRange("", "host_name, nvidia_gpu_index, nvidia_gpu_xid_code"), Legend: "{{host_name}} GPU {{nvidia_gpu_index}} XID {{nvidia_gpu_xid_code}}"}},
					Steps:   []step{{0, warning}, {10, bad}},
					Links:   []link{{"GPUs", "/d/" + uid("gpus") + "?${__url_time_range}"}}},
			}},
			{Title: "Reproductions", Height: 9, Panels: []panel{
				note{heading: heading{Title: "The crash on your desk", Width: 12}, Text: toDesk},
				graph{heading: heading{"From failures to artifacts", "Per second: failures that were selected, artifacts that were written, failures whose group already has its artifacts, and artifacts that retention removed.", 12, "none"},
					Queries: []query{
						{Expr: `sum(rate(otelcol_processor_repro_gen_candidates[$__rate_interval]))`, Legend: "chosen"},
						{Expr: `sum(rate(otelcol_processor_repro_gen_written[$__rate_interval]))`, Legend: "written"},
						{Expr: `sum(rate(otelcol_processor_repro_gen_deduplicated[$__rate_interval]))`, Legend: "counted only: has artifacts"},
						{Expr: `sum(rate(otelcol_processor_repro_gen_removed[$__rate_interval]))`, Legend: "removed by retention"},
					}},
			}},
			{Height: 7, Panels: []panel{
				bars{heading: heading{"No artifact was written", "In this time, by reason. rate_limited and queue_full are temporary; no_space and write_error need action.", 8, "none"}, Counts: true,
					Queries: []query{{Expr: inRange("otelcol_processor_repro_gen_dropped", "", "reason"), Legend: "{{reason}}"}},
					Steps:   []step{{0, warning}}},
				bars{heading: heading{"Redacted values", "In this time, by the redaction rule that matched.", 8, "none"}, Counts: true,
					Queries: []query{{Expr: inRange("otelcol_processor_repro_gen_redactions", "", "rule"), Legend: "{{rule}}"}},
					Steps:   []step{{0, neutral}}},
				graph{heading: heading{"Waiting to be written", "Waiting failures, including those within sibling_wait. Beyond 256 failures are dropped.", 8, "none"},
					Queries: []query{{Expr: `sum by (instance) (otelcol_processor_repro_gen_queue_length)`, Legend: "{{instance}}"}}},
			}},
		},
	}
}
