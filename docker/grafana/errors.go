package main

const toDesk = `A failed span becomes a folder on the collector's machine, below ` + "`directory`" + ` of ` + "`repro_gen`" + `:

` + "```" + `
<directory>/<fingerprint>/group.json         how often, since when, which services
<directory>/<fingerprint>/<time>-<trace>-<span>/repro.py  trace.json  report.md
` + "```" + `

1. Click a diamond in **Errors per second**, or **Traces of the operation** in the table.
2. The failed span in Jaeger has ` + "`repro.artifact.path`" + `: the folder's name.
3. ` + "`python3 repro.py`" + ` there: exit 1 is reproduced, 0 is not, 4 asks for ` + "`--allow-module`" + `, 5 cannot run here.

The folder appears ` + "`sibling_wait`" + ` after the failure. A span with ` + "`repro.artifact.fingerprint`" + ` alone has none: see **No artefact was written**.
Grafana cannot show the files: they hold what your program was called with, and stay on that machine.`

func errorsBoard() *board {
	const chosen = ofService
	toJaeger := toTraces("Traces of the operation", ofColumn("Service"), "ml.operation", ofColumn("Operation"))
	total := `traces_span_metrics_calls_total{` + chosen + `}`
	failed := `traces_span_metrics_calls_total{` + chosen + `,status_code="STATUS_CODE_ERROR"}`
	return &board{
		Name: "errors", Title: "Errors and reproductions", From: "now-1h",
		About: "What fails, where its traces are, and which failures can be run again on a desk.",
		Variables: []variable{
			{"service", "Service", "The program: service.name, with service.namespace before it.", "traces_span_metrics_calls_total", "job"},
		},
		Marks: []mark{
			{Name: "Alerts", Color: "red", Expr: `max by (alertname, severity, job) (ALERTS{alertstate="firing",` + chosen + `})`},
		},
		Rows: []row{
			{Height: 4, Panels: []panel{
				number{said: said{"Errors/s", "Failures that ml_metrics counts: of a trace's spans that tell of the same failure one. From ml_errors.", 4, "none"}, Decimals: 2,
					Expr: `sum(rate(ml_errors_total{` + chosen + `}[$__rate_interval]))`, Past: true, Steps: []step{{0, neutral}}, None: "none"},
				number{said: said{"Spans that fail", "The part of all spans with the status Error, from span_metrics. What a client catches and calls OK is not in it.", 4, "percentunit"}, Decimals: 2,
					Expr: `(sum(rate(` + failed + `[$__rate_interval])) or vector(0)) / (sum(rate(` + total + `[$__rate_interval])) > 0)`, Past: true, Steps: []step{{0, good}, {0.01, warning}, {0.05, bad}}},
				number{said: said{"Kinds of failures", "Groups that repro_gen knows: the same service, class of the root cause, target and innermost frames.", 4, "none"},
					Expr: `sum(otelcol_processor_repro_gen_groups)`, Steps: []step{{0, neutral}}},
				number{said: said{"Artefacts written", "In this time. Each can be run.", 4, "none"},
					Expr: orZero(`sum(` + inRange("otelcol_processor_repro_gen_written", "", "instance") + `)`), Steps: []step{{0, neutral}}},
				number{said: said{"Failures without one", "Failures that were counted and got no artefact, in this time: a limit, a full disk or queue. The reasons are below.", 4, "none"},
					Expr: orZero(`sum(` + inRange("otelcol_processor_repro_gen_dropped", "", "instance") + `)`), Steps: []step{{0, good}, {1, warning}}},
				number{said: said{"Size on disk", "Of all artefacts; retention bounds it.", 4, "bytes"}, Decimals: 1,
					Expr: `sum(otelcol_processor_repro_gen_disk_usage)`, Steps: []step{{0, neutral}}},
			}},
			{Title: "What fails", Height: 9, Panels: []panel{
				graph{said: said{"Errors per second", "By program and type. A diamond is one failure: click it for its trace.", 12, "none"},
					Queries: []query{{Expr: perSecond("ml_errors_total", chosen, "job, error_type"), Legend: "{{job}} {{error_type}}", Exemplars: true}},
					Links:   []link{{"Its operations", "/d/" + uid("errors") + "?var-service=" + ofLabel("job") + "&${__url_time_range}"}}},
				table{said: said{"Errors", "In this time, by operation and type. _OTHER is an error of which the client does not say what kind. The link searches Jaeger for the operation: the failures among them are marked.", 12, "short"},
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
				graph{said: said{"Operations that fail", "The part of an operation's spans with the status Error. Only operations that failed in this time.", 8, "percentunit"},
					Queries: []query{{Expr: `sum by (job, ml_operation) (rate(` + failed + `[$__rate_interval])) / sum by (job, ml_operation) (rate(` + total + `[$__rate_interval]))`, Legend: "{{job}} {{ml_operation}}"}}},
				bars{said: said{"Workers", "In this time: workers that died, circuit breakers that opened, alerts of a client's own health monitor.", 8, "none"}, Counts: true,
					Queries: []query{
						{Expr: inRange("ml_worker_crashes_total", chosen, "job, type"), Legend: "{{job}} died: {{type}}"},
						{Expr: inRange("ml_breaker_openings_total", chosen, "job, pool"), Legend: "{{job}} breaker opened"},
						{Expr: inRange("ml_health_alerts_total", chosen, "job, type"), Legend: "{{job}} alert: {{type}}"},
					},
					Steps: []step{{0, warning}, {10, bad}}},
				bars{said: said{"Errors of GPUs (XID)", "In this time, of all hosts.", 8, "none"}, Counts: true,
					Queries: []query{{Expr: inRange("nvidia_gpu_xid_errors_total", "", "host_name, nvidia_gpu_index, nvidia_gpu_xid_code"), Legend: "{{host_name}} GPU {{nvidia_gpu_index}} XID {{nvidia_gpu_xid_code}}"}},
					Steps:   []step{{0, warning}, {10, bad}},
					Links:   []link{{"GPUs", "/d/" + uid("gpus") + "?${__url_time_range}"}}},
			}},
			{Title: "Reproductions", Height: 9, Panels: []panel{
				note{said: said{Title: "The crash on your desk", Width: 12}, Text: toDesk},
				graph{said: said{"From failures to artefacts", "Per second: failures that were chosen, artefacts that were written, failures of a kind that has its artefacts already, and artefacts that retention removed.", 12, "none"},
					Queries: []query{
						{Expr: `sum(rate(otelcol_processor_repro_gen_candidates[$__rate_interval]))`, Legend: "chosen"},
						{Expr: `sum(rate(otelcol_processor_repro_gen_written[$__rate_interval]))`, Legend: "written"},
						{Expr: `sum(rate(otelcol_processor_repro_gen_deduplicated[$__rate_interval]))`, Legend: "counted only: has artefacts"},
						{Expr: `sum(rate(otelcol_processor_repro_gen_removed[$__rate_interval]))`, Legend: "removed by retention"},
					}},
			}},
			{Height: 7, Panels: []panel{
				bars{said: said{"No artefact was written", "In this time, by reason: rate_limited and queue_full pass, no_space and write_error need somebody.", 8, "none"}, Counts: true,
					Queries: []query{{Expr: inRange("otelcol_processor_repro_gen_dropped", "", "reason"), Legend: "{{reason}}"}},
					Steps:   []step{{0, warning}}},
				bars{said: said{"Values that were withheld", "In this time, by the rule of redaction that matched.", 8, "none"}, Counts: true,
					Queries: []query{{Expr: inRange("otelcol_processor_repro_gen_redactions", "", "rule"), Legend: "{{rule}}"}},
					Steps:   []step{{0, neutral}}},
				graph{said: said{"Waiting to be written", "Failures that wait, those within sibling_wait included. What comes when queue_size is reached is dropped.", 8, "none"},
					Queries: []query{{Expr: `sum by (instance) (otelcol_processor_repro_gen_queue_length)`, Legend: "{{instance}}"}}},
			}},
		},
	}
}
