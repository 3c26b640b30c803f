package main

// runStates are the bottleneck and state of a run, as numbers for a timeline.
var runStates = []shown{
	{"1", "bound by its GPUs", good},
	{"2", "bound by input", warning},
	{"3", "bound by checkpoints", "yellow"},
	{"4", "bound by launches", "purple"},
	{"5", "bound unknown", neutral},
	{"6", "use of time unknown", "semi-dark-blue"},
	{"7", "stalled", bad},
	{"8", "silent", "yellow"},
	{"9", "ended", "gray"},
	{"10", "failed", bad},
}

var bounds = []shown{
	{"gpu", "GPU", good},
	{"input", "input", warning},
	{"checkpoint", "checkpoint", "yellow"},
	{"launch", "launch", "purple"},
	{"unknown", "unknown", neutral},
}

var conditions = []shown{
	{"running", "running", good},
	{"stalled", "STALLED", bad},
	{"silent", "silent", "yellow"},
	{"ended", "ended", quiet},
	{"failed", "failed", bad},
	{"unknown", "unknown", neutral},
}

const boundIs = "gpu: its GPUs are more than 70 % busy. input: more than 20 % of the time is spent waiting for data. checkpoint: more than 20 % is spent on checkpoints. launch: the program works and its GPUs are less than 40 % busy. unknown: none of these, or no GPU is joined to the run. From the rule run:bound, over 15 minutes."

func runsBoard() *board {
	toTraining := toBoard("How does it train?", "training", "run", ofColumn("Run"))
	toJaeger := toTraces("Its traces", ofColumn("Service"), "ml.run.id", ofColumn("Run"))
	return &board{
		Name: "runs", Title: "Runs", From: "now-1h",
		About: "Each run with its GPUs, its owner and its bottleneck. Runs come from traces (ml_enrich), GPUs from the driver (gpu); each works without the other.",
		Variables: []variable{
			{"service", "Service", "The program of the run: service.name, preceded by service.namespace.", "ml_run_state", "job"},
		},
		Marks: []mark{
			{Name: "Pages", Color: "red", Expr: `max by (alertname, job, ml_run_id, hw_id) (ALERTS{alertstate="firing",severity="page"})`},
		},
		Rows: []row{
			{Height: 4, Panels: []panel{
				number{heading: heading{"Running", "Runs that sent a training span recently, from ml_run_state. A run without training spans is not counted.", 3, "none"},
					Expr: orZero(`count(run:state{` + ofService + `,ml_run_state="running"})`), Steps: []step{{0, neutral}}},
				number{heading: heading{"Stalled", "Runs that hold GPUs and sent no training span for five typical steps and at least 5 minutes. A collective that hangs keeps its GPUs busy and sends nothing, so utilization does not show it. If no GPU is joined to the run, the table shows it as “silent”.", 3, "none"},
					Expr: orZero(`count(run:state{` + ofService + `,ml_run_state="stalled"})`), Steps: []step{{0, good}, {1, bad}}},
				number{heading: heading{"GPUs", "GPUs that a collector sees, of all hosts.", 3, "none"},
					Expr: orZero(`count(group by (host_name, hw_id) (hw_status))`), Steps: []step{{0, neutral}}},
				number{heading: heading{"Free GPUs", "GPUs on which no process holds memory: they are not held idle, but free.", 3, "none"},
					Expr: orZero(`count(group by (host_name, hw_id) (hw_status) unless on (host_name, hw_id) nvidia_gpu_workload_memory_usage_bytes)`), Steps: []step{{0, neutral}}},
				number{heading: heading{"GPUs held idle", "GPUs that a process holds and that ran a kernel for less than 5 % of the last 5 minutes. From the driver's counter of busy time, which misses nothing between two readings.", 3, "none"},
					Expr: orZero(`count(group by (host_name, hw_id) (nvidia_gpu_workload_memory_usage_bytes) and on (host_name, hw_id) max by (host_name, hw_id) (rate(nvidia_gpu_busy_time_seconds_total{hw_gpu_task="general"}[5m])) < 0.05)`), Steps: []step{{0, good}, {1, warning}}},
				number{heading: heading{"GPUs failed", "GPUs that fell off the bus, do not respond, or need a reset or a repair.", 3, "none"},
					Expr: orZero(`count(max by (host_name, hw_id) (hw_status{hw_state="failed"}) == 1)`), Steps: []step{{0, good}, {1, bad}},
					Links: []link{{"GPUs", "/d/" + uid("gpus") + "?${__url_time_range}"}}},
				number{heading: heading{"Power of all GPUs", "From the energy counters, over one minute.", 3, "watt"}, Decimals: 1,
					Expr: `sum(max by (host_name, hw_id) (rate(hw_energy_joules_total[1m])))`, Past: true, Steps: []step{{0, neutral}}},
				number{heading: heading{"Alerts", "Firing alerts of docker/prometheus/rules/alerts.yaml and of all other rules of this Prometheus. The table below lists them.", 3, "none"},
					Expr: orZero(`count(ALERTS{alertstate="firing"})`), Steps: []step{{0, good}, {1, warning}}},
			}},
			{Height: 9, Panels: []panel{
				table{heading: heading{"Runs", "One line for each run. A run that ended or is silent disappears 15 minutes after its last step. " + boundIs + " GPUs are those on which its processes hold memory, shared ones as fractions; the owner is the owner of these processes. If no rule joins a GPU to the run, it has none here: see “Joined by” below.", 24, "short"},
					SortBy: "GPUs", None: "no run: no training span was received",
					Queries: []string{
						`max by (service, ml_run_id, ml_run_state) (` + plainService(live) + `)`,
						ofLive(`max by (ml_run_id, bound) (run:bound)`),
						ofLive(`max by (ml_run_id) (run:gpus:sum)`),
						ofLive(`max by (ml_run_id) (run:gpu_busy:ratio)`),
						ofLive(`max by (ml_run_id) (run:goodput:ratio_rate15m)`),
						ofLive(`max by (ml_run_id) (run:mfu:ratio_rate5m)`),
						ofLive(`max by (ml_run_id) (run:ml_steps:rate5m)`),
						ofLive(`sum by (ml_run_id) (run:ml_tokens:rate5m)`),
						ofLive(`time() - max by (ml_run_id) (ml_run_last_step_timestamp_seconds)`),
						ofLive(`max by (ml_run_id) (run:ml_attempts:max)`),
						ofLive(`max by (ml_run_id, owner) (` + owner(`nvidia_gpu_workload_memory_usage_bytes{ml_run_id!=""}`) + `)`),
					},
					Hidden: []string{"A", "B", "K"},
					Columns: []column{
						{Field: "ml_run_id", Name: "Run", Width: 280, Links: []link{toTraining, toJaeger}},
						{Field: "service", Name: "Service", Width: 170},
						{Field: "ml_run_state", Name: "State", Width: 85, Values: conditions},
						{Field: "bound", Name: "Bound by", Width: 110, Values: bounds},
						{Field: "C", Name: "GPUs", Unit: "none", Decimals: 1, Width: 65},
						{Field: "D", Name: "GPUs busy", Unit: "percentunit", Width: 95, Steps: []step{{0, bad}, {0.4, warning}, {0.7, good}}},
						{Field: "E", Name: "Goodput", Unit: "percentunit", Width: 85, Steps: []step{{0, bad}, {0.5, warning}, {0.8, good}}},
						{Field: "F", Name: "MFU", Unit: "percentunit", Decimals: 1, Width: 70},
						{Field: "G", Name: "Steps/s", Unit: "none", Decimals: -1, Width: 80},
						{Field: "H", Name: "Tokens/s", Unit: "short", Decimals: -1, Width: 85},
						{Field: "I", Name: "Last step", Unit: "s", Width: 90, Steps: []step{{0, good}, {300, bad}}},
						{Field: "J", Name: "Attempts", Unit: "none", Width: 85, Steps: []step{{0, quiet}, {2, warning}}},
						{Field: "owner", Name: "Owner"},
					}},
			}},
			{Height: 7, Panels: []panel{
				table{heading: heading{"What runs on the GPUs", "One line for each workload of each GPU, from the driver's list of processes, /proc, Slurm and the kubelet, without any SDK. “Joined by” is the rule that joined it to a run: process, rank, container, pod, slurm, service or index. It is empty if the process names its run itself, or if the run is unknown. Use is the workload's fraction of the time, as the driver samples it.", 24, "short"},
					SortBy: "Host", Ascending: true, None: "no GPU, or no process on a GPU",
					Queries: []string{
						workloadLine("nvidia_gpu_workload_memory_usage_bytes"),
						workloadLine("nvidia_gpu_workload_utilization_ratio"),
					},
					Columns: []column{
						{Field: "host_name", Name: "Host", Width: 150},
						{Field: "nvidia_gpu_index", Name: "Index", Width: 80},
						{Field: "hw_id", Name: "GPU", Width: 350, Links: []link{toBoard("This GPU", "gpus", "gpu", ofColumn("GPU"))}},
						{Field: "A", Name: "Memory", Unit: "bytes", Decimals: 1, Width: 95},
						{Field: "B", Name: "Use", Unit: "percentunit", Width: 70},
						{Field: "ml_run_id", Name: "Run", Width: 280, Links: []link{toTraining}},
						{Field: "ml_rank_global", Name: "Rank", Width: 75},
						{Field: "ml_gpu_join", Name: "Joined by", Width: 110},
						{Field: "service_name", Name: "Service", Width: 120},
						{Field: "k8s_pod_name", Name: "Pod", Width: 120},
						{Field: "owner", Name: "Owner"},
					}},
			}},
			{Height: 9, Panels: []panel{
				states{heading: heading{"What each run waits for", "Over time; stalled takes precedence. " + boundIs, 14, "none"},
					Queries: []query{{Expr: runTimeline, Legend: "{{ml_run_id}}"}},
					Values:  runStates,
					Links:   []link{toBoard("How does it train?", "training", "run", ofLabel("ml_run_id"))}},
				table{heading: heading{"Alerts firing", "The description of each alert is in docker/prometheus/rules/alerts.yaml.", 10, "short"},
					SortBy: "Severity", Ascending: true, None: "none",
					Queries: []string{`max by (severity, alertname, job, ml_run_id, host_name, hw_id) (ALERTS{alertstate="firing"})`},
					Hidden:  []string{"A"},
					Columns: []column{
						{Field: "severity", Name: "Severity", Width: 105, Values: []shown{{"page", "page", bad}, {"ticket", "ticket", warning}}},
						{Field: "alertname", Name: "Alert", Width: 150},
						{Field: "job", Name: "Service", Width: 160},
						{Field: "ml_run_id", Name: "Run", Width: 150, Links: []link{toTraining}},
						{Field: "host_name", Name: "Host", Width: 90},
						{Field: "hw_id", Name: "GPU", Links: []link{toBoard("This GPU", "gpus", "gpu", ofColumn("GPU"))}},
					}},
			}},
			{Height: 8, Panels: []panel{
				graph{heading: heading{"Goodput", "The productive fraction of a run's time, over 15 minutes. The dashboard Training shows the rest. Host time: CUDA may continue after a span.", 8, "percentunit"},
					Top: 1, Queries: []query{{Expr: ofLive(`max by (ml_run_id) (run:goodput:ratio_rate15m)`), Legend: "{{ml_run_id}}"}},
					Links: []link{toBoard("How does it train?", "training", "run", ofLabel("ml_run_id"))}},
				graph{heading: heading{"GPUs of each run", "GPUs on which a run's processes hold memory. A shared GPU is divided equally among its workloads, because GPUs do not report how much each one uses.", 8, "none"},
					Stack: true, Queries: []query{{Expr: ofLive(`max by (ml_run_id) (run:gpus:sum)`), Legend: "{{ml_run_id}}"}}},
				bars{heading: heading{"GPU hours in this time", "What each run held, used or not, across restarts: the integral of run:gpus:sum.", 4, "h"},
					Queries: []query{{Expr: ofLive(`max by (ml_run_id) (sum_over_time(run:gpus:sum[$__range:15s])) * 15 / 3600`), Legend: "{{ml_run_id}}"}},
					Steps:   []step{{0, neutral}}},
				bars{heading: heading{"Energy in this time", "Energy of the GPUs of each run, shared ones divided equally. The rest of the host is not included.", 4, "watth"},
					Queries: []query{{Expr: ofLive(`max by (ml_run_id) (sum_over_time(run:power_watts:rate1m[$__range:15s])) * 15 / 3600`), Legend: "{{ml_run_id}}"}},
					Steps:   []step{{0, neutral}}},
			}},
			{Title: "Costs", Height: 8, Panels: []panel{
				graph{heading: heading{"Dollars an hour of each run", "Its GPUs by prices::gpu_hour of ml_metrics, and its requests to models. A run with a GPU whose price is not known has only its requests.", 6, "currencyUSD"},
					Queries: []query{{Expr: `run:price_usd_per_hour:sum`, Legend: "{{ml_run_id}}"}}},
				graph{heading: heading{"Dollars an hour of requests", "By program, model, and whether the client states the cost or ml_metrics computes it by prices::file. ml_requests_unpriced_total counts requests without a cost.", 6, "currencyUSD"},
					Queries: []query{{Expr: `3600 * ` + perSecond("ml_cost_USD_total", ofService, "job, gen_ai_request_model, ml_cost_source"), Legend: "{{job}} {{gen_ai_request_model}} {{ml_cost_source}}"}}},
				graph{heading: heading{"Dollars for a million tokens", "Of each model, input and output together, over an hour; and of each run, with its GPUs.", 6, "currencyUSD"},
					Queries: []query{
						{Expr: `model:cost_usd_per_million_tokens:ratio_rate1h{` + ofService + `}`, Legend: "{{job}} {{gen_ai_request_model}}"},
						{Expr: `run:cost_usd_per_million_tokens:ratio_rate5m`, Legend: "run {{ml_run_id}}"},
					}},
				graph{heading: heading{"Dollars an hour of GPUs without work", "held: a workload holds the GPU's memory, and the GPU has done nothing for 5 minutes. free: nobody holds it.", 6, "currencyUSD"},
					Stack: true, Queries: []query{{Expr: `sum by (state) (gpu:idle_price_usd_per_hour:max) or label_replace(vector(0), "state", "free", "", "")`, Legend: "{{state}}"}}},
			}},
		},
	}
}

// workloadLine returns a query with a value for each workload of each GPU.
func workloadLine(metric string) string {
	return `max by (host_name, nvidia_gpu_index, hw_id, ml_run_id, ml_rank_global, ml_gpu_join, service_name, k8s_pod_name, owner) (` +
		owner(workloads(metric, "")) + `)`
}

// runTimeline has the first matching number of runStates for each run.
const runTimeline = `(
max by (ml_run_id) (
  run:state{` + ofService + `,ml_run_state="stalled"} * 7
  or run:state{` + ofService + `,ml_run_state="silent"} * 8
  or run:state{` + ofService + `,ml_run_state="ended"} * 9
  or run:state{` + ofService + `,ml_run_state="failed"} * 10
)
or on (ml_run_id) max by (ml_run_id) (
  run:bound{bound="gpu"}
  or run:bound{bound="input"} * 2
  or run:bound{bound="checkpoint"} * 3
  or run:bound{bound="launch"} * 4
  or run:bound{bound="unknown"} * 5
)
or on (ml_run_id) max by (ml_run_id) (run:state{` + ofService + `}) * 6
) and on (ml_run_id) ` + live
