package main

// What bounds a run, and how it fares, as numbers for a timeline.
var runStates = []shown{
	{"1", "bound by its GPUs", good},
	{"2", "bound by input", warning},
	{"3", "bound by checkpoints", "yellow"},
	{"4", "bound by launches", "purple"},
	{"5", "bound unknown", neutral},
	{"6", "no use of time known", "semi-dark-blue"},
	{"7", "stalled", bad},
	{"8", "silent", "yellow"},
	{"9", "ended", "gray"},
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
	{"unknown", "unknown", neutral},
}

const boundIs = "gpu: its GPUs are busier than 70 %. input: more than 20 % of the time waits for data. checkpoint: more than 20 % goes into checkpoints. launch: the program works and its GPUs are less than 40 % busy. unknown: none of these, or no GPU is known to be the run's. From the rule run:bound, over 15 minutes."

func runsBoard() *board {
	toTraining := toBoard("How does it train?", "training", "run", ofColumn("Run"))
	toJaeger := toTraces("Its traces", ofColumn("Service"), "ml.run.id", ofColumn("Run"))
	return &board{
		Name: "runs", Title: "Runs", From: "now-1h",
		About: "Which run is on which GPUs, whose it is, and what it waits for. Runs are found in traces (ml_enrich), GPUs in the driver (gpu); neither needs the other.",
		Variables: []variable{
			{"service", "Service", "The program that a run is of: service.name, with service.namespace before it.", "ml_run_state", "job"},
		},
		Marks: []mark{
			{Name: "Pages", Color: "red", Expr: `max by (alertname, job, ml_run_id, hw_id) (ALERTS{alertstate="firing",severity="page"})`},
		},
		Rows: []row{
			{Height: 4, Panels: []panel{
				number{said: said{"Running", "Runs with a span of training lately. From ml_run_state; a run that sends no spans of training is not counted.", 3, "none"},
					Expr: orZero(`count(run:state{` + ofService + `,ml_run_state="running"})`), Steps: []step{{0, neutral}}},
				number{said: said{"Stalled", "Runs that hold GPUs and sent no span of training for five usual steps and at least 5 minutes. A collective that hangs keeps its GPUs busy and sends nothing: look here, not at utilization. Without a GPU that is known to be its a run is “silent” in the table instead.", 3, "none"},
					Expr: orZero(`count(run:state{` + ofService + `,ml_run_state="stalled"})`), Steps: []step{{0, good}, {1, bad}}},
				number{said: said{"GPUs", "GPUs that a collector sees, of all hosts.", 3, "none"},
					Expr: orZero(`count(group by (host_name, hw_id) (hw_status))`), Steps: []step{{0, neutral}}},
				number{said: said{"GPUs without work", "GPUs on which no process has memory. Free, not idle: nobody holds them.", 3, "none"},
					Expr: orZero(`count(group by (host_name, hw_id) (hw_status) unless on (host_name, hw_id) nvidia_gpu_workload_memory_usage_bytes)`), Steps: []step{{0, neutral}}},
				number{said: said{"GPUs held idle", "GPUs that a process holds and that ran a kernel for less than 5 % of the last 5 minutes. From the driver's own count of busy time, so nothing between two readings is missed.", 3, "none"},
					Expr: orZero(`count(group by (host_name, hw_id) (nvidia_gpu_workload_memory_usage_bytes) and on (host_name, hw_id) max by (host_name, hw_id) (rate(nvidia_gpu_busy_time_seconds_total{hw_gpu_task="general"}[5m])) < 0.05)`), Steps: []step{{0, good}, {1, warning}}},
				number{said: said{"GPUs failed", "GPUs that fell off the bus, do not answer, or need a reset or a repair.", 3, "none"},
					Expr: orZero(`count(max by (host_name, hw_id) (hw_status{hw_state="failed"}) == 1)`), Steps: []step{{0, good}, {1, bad}},
					Links: []link{{"GPUs", "/d/" + uid("gpus") + "?${__url_time_range}"}}},
				number{said: said{"Power of all GPUs", "From their energy counters over a minute.", 3, "watt"}, Decimals: 1,
					Expr: `sum(max by (host_name, hw_id) (rate(hw_energy_joules_total[1m])))`, Past: true, Steps: []step{{0, neutral}}},
				number{said: said{"Alerts", "Alerts of docker/prometheus/rules/alerts.yaml, and of any other rules that this Prometheus has. They are listed below.", 3, "none"},
					Expr: orZero(`count(ALERTS{alertstate="firing"})`), Steps: []step{{0, good}, {1, warning}}},
			}},
			{Height: 9, Panels: []panel{
				table{said: said{"Runs", "One line for each run; 15 minutes after its last step one that ended or fell silent leaves. " + boundIs + " GPUs are those that its processes have memory on, shared ones in parts; the owner is who these processes belong to. A run has no GPUs here where nothing ties the two: see “joined by” below.", 24, "short"},
					SortBy: "GPUs", None: "no run: nothing has sent a span of training",
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
						{Field: "bound", Name: "Bound by", Width: 95, Values: bounds},
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
				table{said: said{"What runs on the GPUs", "One line for each workload of each GPU, from the driver's list of processes, /proc, Slurm and the kubelet; no SDK is needed for it. “Joined by” is the rule that tied it to a run: process, rank, container, pod, slurm, service or index; where nothing stands, the process names its run itself or nobody knows it. Use is the workload's part of the time, which the driver samples.", 24, "short"},
					SortBy: "Host", Ascending: true, None: "no GPU, or no process on any",
					Queries: []string{
						workloadLine("nvidia_gpu_workload_memory_usage_bytes"),
						workloadLine("nvidia_gpu_workload_utilization_ratio"),
					},
					Columns: []column{
						{Field: "host_name", Name: "Host", Width: 150},
						{Field: "nvidia_gpu_index", Name: "Index", Width: 65},
						{Field: "hw_id", Name: "GPU", Width: 330, Links: []link{toBoard("This GPU", "gpus", "gpu", ofColumn("GPU"))}},
						{Field: "A", Name: "Memory", Unit: "bytes", Decimals: 1, Width: 95},
						{Field: "B", Name: "Use", Unit: "percentunit", Width: 70},
						{Field: "ml_run_id", Name: "Run", Width: 280, Links: []link{toTraining}},
						{Field: "ml_rank_global", Name: "Rank", Width: 65},
						{Field: "ml_gpu_join", Name: "Joined by", Width: 95},
						{Field: "service_name", Name: "Service", Width: 120},
						{Field: "k8s_pod_name", Name: "Pod", Width: 120},
						{Field: "owner", Name: "Owner"},
					}},
			}},
			{Height: 9, Panels: []panel{
				states{said: said{"What each run waits for", "Over time, with stalled before all else. " + boundIs, 14, "none"},
					Queries: []query{{Expr: runTimeline, Legend: "{{ml_run_id}}"}},
					Values:  runStates,
					Links:   []link{toBoard("How does it train?", "training", "run", ofLabel("ml_run_id"))}},
				table{said: said{"Alerts firing", "What each says and what to look at is in docker/prometheus/rules/alerts.yaml.", 10, "short"},
					SortBy: "Severity", Ascending: true, None: "none",
					Queries: []string{`max by (severity, alertname, job, ml_run_id, host_name, hw_id) (ALERTS{alertstate="firing"})`},
					Hidden:  []string{"A"},
					Columns: []column{
						{Field: "severity", Name: "Severity", Width: 80, Values: []shown{{"page", "page", bad}, {"ticket", "ticket", warning}}},
						{Field: "alertname", Name: "Alert", Width: 170},
						{Field: "job", Name: "Service", Width: 160},
						{Field: "ml_run_id", Name: "Run", Width: 120, Links: []link{toTraining}},
						{Field: "host_name", Name: "Host", Width: 100},
						{Field: "hw_id", Name: "GPU", Links: []link{toBoard("This GPU", "gpus", "gpu", ofColumn("GPU"))}},
					}},
			}},
			{Height: 8, Panels: []panel{
				graph{said: said{"Goodput", "The part of a run's time that made progress, over 15 minutes: productive time by all of it. What the rest was is on the dashboard Training. Host time: CUDA runs on after a span.", 8, "percentunit"},
					Top: 1, Queries: []query{{Expr: ofLive(`max by (ml_run_id) (run:goodput:ratio_rate15m)`), Legend: "{{ml_run_id}}"}},
					Links: []link{toBoard("How does it train?", "training", "run", ofLabel("ml_run_id"))}},
				graph{said: said{"GPUs of each run", "GPUs on which a run's processes have memory; of a shared one each workload has an equal part, since nothing on the GPU says how much of it each used.", 8, "none"},
					Stack: true, Queries: []query{{Expr: ofLive(`max by (ml_run_id) (run:gpus:sum)`), Legend: "{{ml_run_id}}"}}},
				bars{said: said{"GPU hours in this time", "What each run held, used or not, over restarts: run:gpus:sum added up.", 4, "h"},
					Queries: []query{{Expr: ofLive(`max by (ml_run_id) (sum_over_time(run:gpus:sum[$__range:15s])) * 15 / 3600`), Legend: "{{ml_run_id}}"}},
					Steps:   []step{{0, neutral}}},
				bars{said: said{"Energy in this time", "What the GPUs of each run drew, shared ones in equal parts. Not what the rest of the host drew.", 4, "watth"},
					Queries: []query{{Expr: ofLive(`max by (ml_run_id) (sum_over_time(run:power_watts:rate1m[$__range:15s])) * 15 / 3600`), Legend: "{{ml_run_id}}"}},
					Steps:   []step{{0, neutral}}},
			}},
		},
	}
}

// workloadLine is a value of each workload of each GPU.
func workloadLine(metric string) string {
	return `max by (host_name, nvidia_gpu_index, hw_id, ml_run_id, ml_rank_global, ml_gpu_join, service_name, k8s_pod_name, owner) (` +
		owner(workloads(metric, "")) + `)`
}

// runTimeline is the number of runStates for each run: the first that holds.
const runTimeline = `(
max by (ml_run_id) (
  run:state{` + ofService + `,ml_run_state="stalled"} * 7
  or run:state{` + ofService + `,ml_run_state="silent"} * 8
  or run:state{` + ofService + `,ml_run_state="ended"} * 9
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
