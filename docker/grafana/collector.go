package main

import "strings"

func collectorBoard() *board {
	const chosen = ofInstance
	// rates adds up a counter of each signal.
	signals := func(metric, by, legend string) []query {
		var queries []query
		for _, signal := range []struct{ items, name string }{{"spans", "spans"}, {"metric_points", "points"}, {"log_records", "log records"}} {
			queries = append(queries, query{
				Expr:   perSecond(metric+"_"+signal.items, chosen, by),
				Legend: strings.ReplaceAll(legend, "SIGNAL", signal.name),
			})
		}
		return queries
	}
	lost := func(metric string) string {
		var all []string
		for _, items := range []string{"spans", "metric_points", "log_records"} {
			all = append(all, `(sum(`+inRange(metric+"_"+items, chosen, "instance")+`) or vector(0))`)
		}
		return strings.Join(all, " + ")
	}
	return &board{
		Name: "collector", Title: "Collector", From: "now-1h",
		About: "Whether the collector keeps up, what it refuses and loses, and what its own components leave out. From its own metrics, port 8888; what it computes of clients is on the other dashboards.",
		Variables: []variable{
			{"instance", "Collector", "The address that Prometheus reads the collector's own metrics from.", "otelcol_process_uptime", "instance"},
		},
		Marks: []mark{
			{Name: "Starts", Color: "blue", Expr: `max by (instance) (otelcol_process_uptime{` + chosen + `}) < 30`},
		},
		Rows: []row{
			{Height: 4, Panels: []panel{
				number{said: said{"Up", "Collectors that answer Prometheus, of those that it is to read.", 3, "percentunit"},
					Expr: `avg(up{job="otelcol-ml-internal",` + chosen + `})`, Steps: []step{{0, bad}, {1, good}}},
				number{said: said{"Up since", "Of the youngest.", 3, "s"},
					Expr: `min(otelcol_process_uptime{` + chosen + `})`, Steps: []step{{0, warning}, {300, neutral}}},
				number{said: said{"CPU", "Cores that all chosen ones use.", 3, "none"}, Decimals: 2,
					Expr: `sum(rate(otelcol_process_cpu_seconds{` + chosen + `}[$__rate_interval]))`, Past: true, Steps: []step{{0, neutral}}},
				number{said: said{"Memory", "Resident, of the largest.", 3, "bytes"},
					Expr: `max(otelcol_process_memory_rss{` + chosen + `})`, Past: true, Steps: []step{{0, neutral}}},
				number{said: said{"Refused", "Items in this time that clients were told to send again: memory_limiter, or a full queue. Clients that do not are the loss.", 3, "none"},
					Expr: lost("otelcol_receiver_refused"), Steps: []step{{0, good}, {1, warning}}},
				number{said: said{"Lost before the queue", "Items in this time that an exporter's full queue did not take.", 3, "none"},
					Expr: lost("otelcol_exporter_enqueue_failed"), Steps: []step{{0, good}, {1, bad}}},
				number{said: said{"Lost behind the queue", "Items in this time that a destination refused for good, or for longer than retries last.", 3, "none"},
					Expr: lost("otelcol_exporter_send_failed"), Steps: []step{{0, good}, {1, bad}}},
				number{said: said{"Fullest queue", "Of all exporters. At 100 % clients are refused or data is lost.", 3, "percentunit"},
					Expr: `max(otelcol_exporter_queue_size{` + chosen + `} / (otelcol_exporter_queue_capacity{` + chosen + `} > 0))`, Past: true, Steps: []step{{0, good}, {0.5, warning}, {0.8, bad}}, None: "no queue"},
			}},
			{Title: "Through it", Height: 8, Panels: []panel{
				graph{said: said{"Received per second", "Items that receivers passed on.", 8, "short"}, Queries: signals("otelcol_receiver_accepted", "receiver, transport", "{{receiver}} {{transport}} SIGNAL")},
				graph{said: said{"Sent per second", "Items that destinations took. prometheus is points that were put up for reading.", 8, "short"}, Queries: signals("otelcol_exporter_sent", "exporter", "{{exporter}} SIGNAL")},
				graph{said: said{"Queues", "The part of each exporter's queue that is full.", 8, "percentunit"},
					Top: 1, Queries: []query{{Expr: `max by (exporter, data_type) (otelcol_exporter_queue_size{` + chosen + `} / (otelcol_exporter_queue_capacity{` + chosen + `} > 0))`, Legend: "{{exporter}} {{data_type}}"}},
					Steps: []step{{0, good}, {0.5, warning}, {0.8, bad}}},
			}},
			{Height: 8, Panels: []panel{
				graph{said: said{"Refused per second", "By receiver.", 8, "short"}, Queries: signals("otelcol_receiver_refused", "receiver, transport", "{{receiver}} {{transport}} SIGNAL")},
				graph{said: said{"Lost per second", "By exporter: what its queue did not take, and what its destination did not. No line, no loss.", 8, "short"},
					Queries: append(signals("otelcol_exporter_enqueue_failed", "exporter", "{{exporter}} queue full: SIGNAL"), signals("otelcol_exporter_send_failed", "exporter", "{{exporter}} not sent: SIGNAL")...)},
				graph{said: said{"Memory of each", "Resident memory, and Go's heap within. memory_limiter refuses at 80 % of what the machine or container has.", 8, "bytes"},
					Queries: []query{
						{Expr: `max by (instance) (otelcol_process_memory_rss{` + chosen + `})`, Legend: "{{instance}} resident"},
						{Expr: `max by (instance) (otelcol_process_runtime_heap_alloc_bytes{` + chosen + `})`, Legend: "{{instance}} heap"},
					}},
			}},
			{Title: "What its own components leave out", Height: 8, Panels: []panel{
				bars{said: said{"Points that Prometheus would lose", "In this time, by what is wrong with them as clients sent them; the shipped configuration mends them.", 8, "none"}, Counts: true,
					Queries: []query{{Expr: inRange("otelcol_processor_ml_enrich_points_unsafe", chosen, "reason"), Legend: "{{reason}}"}}, Steps: []step{{0, warning}}},
				bars{said: said{"Rates and values left out", "In this time: rates that telemetry does not allow, ids that cannot be used, and by ml_guard what has more identities than their limit.", 8, "none"}, Counts: true,
					Queries: []query{
						{Expr: inRange("otelcol_processor_ml_enrich_rates_skipped", chosen, "reason"), Legend: "rate: {{reason}}"},
						{Expr: inRange("otelcol_processor_ml_enrich_values_rejected", chosen, "processor"), Legend: "values rejected"},
						{Expr: inRange("otelcol_processor_ml_guard_spans_overflowed", chosen, "kind"), Legend: "beyond the limit: spans by {{kind}}"},
						{Expr: inRange("otelcol_processor_ml_guard_points_overflowed", chosen, "kind"), Legend: "beyond the limit: points by {{kind}}"},
					}, Steps: []step{{0, neutral}}},
				bars{said: said{"Spans and updates left out by ml_metrics", "In this time: spans that came twice, values out of range, and series beyond max_series or max_runs, whose counts go into one overflow series.", 8, "none"}, Counts: true,
					Queries: []query{
						{Expr: inRange("otelcol_connector_ml_metrics_skipped", chosen, "reason"), Legend: "{{reason}}"},
						{Expr: inRange("otelcol_connector_ml_metrics_overflowed_updates", chosen, "limit"), Legend: "beyond {{limit}}"},
					}, Steps: []step{{0, warning}}},
			}},
			{Height: 8, Panels: []panel{
				graph{said: said{"What ml_enrich remembers", "Entries of each part of its store; all are bounded.", 8, "short"},
					Queries: []query{{Expr: `sum by (index) (otelcol_processor_ml_enrich_store_entries{` + chosen + `})`, Legend: "{{index}}"}}},
				graph{said: said{"Forgotten because it was full, per second", "Evictions from that store. What was forgotten cannot be tied to what comes later.", 8, "none"},
					Queries: []query{{Expr: perSecond("otelcol_processor_ml_enrich_store_evictions", chosen, "index"), Legend: "{{index}}"}}},
				graph{said: said{"Series of ml_metrics", "What max_series bounds, and the runs that have some of their own, which max_runs bounds.", 8, "none"},
					Queries: []query{
						{Expr: `sum(otelcol_connector_ml_metrics_series{` + chosen + `})`, Legend: "series"},
						{Expr: `sum(otelcol_connector_ml_metrics_runs{` + chosen + `})`, Legend: "runs"},
					}},
			}},
			{Title: "At its ends", Height: 8, Panels: []panel{
				graph{said: said{"Read from GPUs", "Points of each reading per second, and those that failed.", 8, "none"},
					Queries: []query{
						{Expr: perSecond("otelcol_scraper_scraped_metric_points", chosen, "receiver"), Legend: "{{receiver}} points"},
						{Expr: perSecond("otelcol_scraper_errored_metric_points", chosen, "receiver"), Legend: "{{receiver}} failed"},
					}},
				graph{said: said{"Series that Prometheus reads", "Samples of each scrape. Many more than usual is a label with too many values.", 8, "short"},
					Queries: []query{{Expr: `max by (job, instance) (scrape_samples_scraped{job=~"otelcol-ml|otelcol-ml-internal"})`, Legend: "{{job}}"}}},
				graph{said: said{"Time of a scrape", "Longer than scrape_timeout and there is none.", 8, "s"},
					Queries: []query{{Expr: `max by (job, instance) (scrape_duration_seconds{job=~"otelcol-ml|otelcol-ml-internal"})`, Legend: "{{job}}"}}},
			}},
		},
	}
}
