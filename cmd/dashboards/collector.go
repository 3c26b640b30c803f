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
		About: "The collector's load, refused and lost data, and what its components skip. From its own metrics, port 8888. Metrics of clients are on the other dashboards.",
		Variables: []variable{
			{"instance", "Collector", "The address that Prometheus reads the collector's own metrics from.", "otelcol_process_uptime", "instance"},
		},
		Marks: []mark{
			{Name: "Starts", Color: "blue", Expr: `max by (instance) (otelcol_process_uptime{` + chosen + `}) < 30`},
		},
		Rows: []row{
			{Height: 4, Panels: []panel{
				number{heading: heading{"Up", "Collectors that respond to Prometheus, of all configured ones.", 3, "percentunit"},
					Expr: `avg(up{job="otelcol-ml-internal",` + chosen + `})`, Steps: []step{{0, bad}, {1, good}}},
				number{heading: heading{"Up since", "Of the collector that started last.", 3, "s"},
					Expr: `min(otelcol_process_uptime{` + chosen + `})`, Steps: []step{{0, warning}, {300, neutral}}},
				number{heading: heading{"CPU", "Cores used by all chosen collectors.", 3, "none"}, Decimals: 2,
					Expr: `sum(rate(otelcol_process_cpu_seconds{` + chosen + `}[$__rate_interval]))`, Past: true, Steps: []step{{0, neutral}}},
				number{heading: heading{"Memory", "Resident memory of the largest collector.", 3, "bytes"},
					Expr: `max(otelcol_process_memory_rss{` + chosen + `})`, Past: true, Steps: []step{{0, neutral}}},
				number{heading: heading{"Refused", "Items in this time that clients were told to retry, because of memory_limiter or a full queue. If a client does not retry, they are lost.", 3, "none"},
					Expr: lost("otelcol_receiver_refused"), Steps: []step{{0, good}, {1, warning}}},
				number{heading: heading{"Lost before queue", "Items in this time that an exporter's full queue rejected.", 3, "none"},
					Expr: lost("otelcol_exporter_enqueue_failed"), Steps: []step{{0, good}, {1, bad}}},
				number{heading: heading{"Lost after queue", "Items in this time that a destination refused permanently, or for longer than retries last.", 3, "none"},
					Expr: lost("otelcol_exporter_send_failed"), Steps: []step{{0, good}, {1, bad}}},
				number{heading: heading{"Fullest queue", "Of all exporters. At 100 % clients are refused or data is lost.", 3, "percentunit"},
					Expr: `max(otelcol_exporter_queue_size{` + chosen + `} / (otelcol_exporter_queue_capacity{` + chosen + `} > 0))`, Past: true, Steps: []step{{0, good}, {0.5, warning}, {0.8, bad}}, None: "no queue"},
			}},
			{Title: "Throughput", Height: 8, Panels: []panel{
				graph{heading: heading{"Received per second", "Items that receivers accepted.", 8, "short"}, Queries: signals("otelcol_receiver_accepted", "receiver, transport", "{{receiver}} {{transport}} SIGNAL")},
				graph{heading: heading{"Sent per second", "Items that destinations accepted. For prometheus: points that were made available to scrapes.", 8, "short"}, Queries: signals("otelcol_exporter_sent", "exporter", "{{exporter}} SIGNAL")},
				graph{heading: heading{"Queues", "How full each exporter's queue is.", 8, "percentunit"},
					Top: 1, Queries: []query{{Expr: `max by (exporter, data_type) (otelcol_exporter_queue_size{` + chosen + `} / (otelcol_exporter_queue_capacity{` + chosen + `} > 0))`, Legend: "{{exporter}} {{data_type}}"}},
					Steps: []step{{0, good}, {0.5, warning}, {0.8, bad}}},
			}},
			{Height: 8, Panels: []panel{
				graph{heading: heading{"Refused per second", "By receiver.", 8, "short"}, Queries: signals("otelcol_receiver_refused", "receiver, transport", "{{receiver}} {{transport}} SIGNAL")},
				graph{heading: heading{"Lost per second", "By exporter: items that its queue or its destination rejected. No line means no loss.", 8, "short"}, None: "no loss",
					Queries: append(signals("otelcol_exporter_enqueue_failed", "exporter", "{{exporter}} queue full: SIGNAL"), signals("otelcol_exporter_send_failed", "exporter", "{{exporter}} not sent: SIGNAL")...)},
				graph{heading: heading{"Memory of each", "Resident memory, and Go's heap within it. memory_limiter refuses data at 60 % of the memory of the machine or container.", 8, "bytes"},
					Queries: []query{
						{Expr: `max by (instance) (otelcol_process_memory_rss{` + chosen + `})`, Legend: "{{instance}} resident"},
						{Expr: `max by (instance) (otelcol_process_runtime_heap_alloc_bytes{` + chosen + `})`, Legend: "{{instance}} heap"},
					}},
			}},
			{Title: "Skipped by its components", Height: 8, Panels: []panel{
				bars{heading: heading{"Points that Prometheus would lose", "In this time, by what is wrong with them as clients sent them. The shipped configuration repairs them.", 8, "none"}, Counts: true,
					Queries: []query{{Expr: inRange("otelcol_processor_ml_enrich_points_unsafe", chosen, "reason"), Legend: "{{reason}}"}}, Steps: []step{{0, warning}}},
				bars{heading: heading{"Skipped rates and values", "In this time: rates that the telemetry does not support, unusable ids, and identities beyond a limit of ml_guard.", 8, "none"}, Counts: true,
					Queries: []query{
						{Expr: inRange("otelcol_processor_ml_enrich_rates_skipped", chosen, "reason"), Legend: "rate: {{reason}}"},
						{Expr: inRange("otelcol_processor_ml_enrich_values_rejected", chosen, "processor"), Legend: "values rejected"},
						{Expr: inRange("otelcol_processor_ml_guard_spans_overflowed", chosen, "kind"), Legend: "beyond the limit: spans by {{kind}}"},
						{Expr: inRange("otelcol_processor_ml_guard_points_overflowed", chosen, "kind"), Legend: "beyond the limit: points by {{kind}}"},
					}, Steps: []step{{0, neutral}}},
				bars{heading: heading{"Spans and updates skipped by ml_metrics", "In this time: duplicate spans, values out of range, and updates beyond max_series or max_runs, which are added to an overflow series.", 8, "none"}, Counts: true,
					Queries: []query{
						{Expr: inRange("otelcol_connector_ml_metrics_skipped", chosen, "reason"), Legend: "{{reason}}"},
						{Expr: inRange("otelcol_connector_ml_metrics_overflowed_updates", chosen, "limit"), Legend: "beyond {{limit}}"},
					}, Steps: []step{{0, warning}}},
			}},
			{Height: 8, Panels: []panel{
				graph{heading: heading{"Entries of ml_enrich's store", "Entries of each index of the store; all are limited.", 8, "short"},
					Queries: []query{{Expr: `sum by (index) (otelcol_processor_ml_enrich_store_entries{` + chosen + `})`, Legend: "{{index}}"}}},
				graph{heading: heading{"Evictions of ml_enrich's store per second", "Entries that were removed because the store was full. Later data cannot be correlated with them.", 8, "none"},
					Queries: []query{{Expr: perSecond("otelcol_processor_ml_enrich_store_evictions", chosen, "index"), Legend: "{{index}}"}}},
				graph{heading: heading{"Series of ml_metrics", "Series, limited by max_series, and runs with their own series, limited by max_runs.", 8, "none"},
					Queries: []query{
						{Expr: `sum(otelcol_connector_ml_metrics_series{` + chosen + `})`, Legend: "series"},
						{Expr: `sum(otelcol_connector_ml_metrics_runs{` + chosen + `})`, Legend: "runs"},
					}},
			}},
			{Title: "Inputs and outputs", Height: 8, Panels: []panel{
				graph{heading: heading{"Read from GPUs", "Points of GPU readings per second, and failed ones.", 8, "none"},
					Queries: []query{
						{Expr: perSecond("otelcol_scraper_scraped_metric_points", chosen, "receiver"), Legend: "{{receiver}} points"},
						{Expr: perSecond("otelcol_scraper_errored_metric_points", chosen, "receiver"), Legend: "{{receiver}} failed"},
					}},
				graph{heading: heading{"Series that Prometheus reads", "Samples of each scrape. A sudden increase is usually a label with too many values.", 8, "short"},
					Queries: []query{{Expr: `max by (job, instance) (scrape_samples_scraped{job=~"otelcol-ml|otelcol-ml-internal"})`, Legend: "{{job}}"}}},
				graph{heading: heading{"Time of a scrape", "A scrape that takes longer than scrape_timeout fails.", 8, "s"},
					Queries: []query{{Expr: `max by (job, instance) (scrape_duration_seconds{job=~"otelcol-ml|otelcol-ml-internal"})`, Legend: "{{job}}"}}},
			}},
		},
	}
}
