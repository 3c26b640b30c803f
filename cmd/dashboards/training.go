package main

// What a run's time goes into, in the colours that all graphs of it have.
var timeColors = []shown{
	{"productive", "", "green"}, {"data_load", "", "orange"}, {"checkpoint", "", "yellow"}, {"checkpoint_restore", "", "semi-dark-yellow"},
	{"validation", "", "blue"}, {"startup", "", "light-blue"}, {"queue", "", "purple"}, {"rework", "", "red"},
	{"idle", "", "gray"}, {"other", "", "semi-dark-purple"}, {"unknown", "", "dark-red"},
}

var phaseColors = []shown{
	{"forward", "", "green"}, {"backward", "", "blue"}, {"forward_backward", "", "semi-dark-green"}, {"optimizer", "", "purple"},
	{"data_load", "", "orange"}, {"checkpoint", "", "yellow"}, {"validation", "", "light-blue"}, {"batch", "", "dark-green"}, {"other", "", "gray"},
}

func trainingBoard() *board {
	const chosen = ofRun
	wholeSteps := chosen + `,ml_phase="step"`
	return &board{
		Name: "training", Title: "Training", From: "now-1h",
		About: "Training speed, use of time, slow ranks, losses and GPU memory of a run. Choose a run here or on the dashboard Runs.",
		Variables: []variable{
			{"service", "Service", "The program: service.name, preceded by service.namespace.", "ml_run_state", "job"},
			{"run", "Run", "ml.run.id: the launcher's name of the run, or a hash if it has none.", `ml_run_state{job=~"$service"}`, "ml_run_id"},
		},
		Marks: []mark{
			{Name: "Restarts", Color: "orange", Expr: `max by (job, ml_run_id) (changes(ml_run_attempts_total{` + chosen + `}[1m]) > 0 and ml_run_attempts_total{` + chosen + `} > 1)`},
			{Name: "Alerts", Color: "red", Expr: `max by (alertname, severity, ml_run_id) (ALERTS{alertstate="firing",ml_run_id!="",ml_run_id=~"$run"})`},
		},
		Rows: []row{
			{Height: 4, Panels: []panel{
				number{heading: heading{"Steps/s", "Optimizer steps per second, the sum of all chosen runs. All ranks of a run step together and count once.", 3, "none"}, Decimals: 2,
					Expr: `sum(run:ml_steps:rate5m{` + chosen + `})`, Past: true, Steps: []step{{0, neutral}}},
				number{heading: heading{"Tokens trained/s", "Of all ranks. Available only if `training` of ml_enrich or the program's resource states the tokens of a step: no telemetry has them.", 3, "short"}, Decimals: 1,
					Expr: `sum(run:ml_training_tokens:rate5m{` + chosen + `})`, Past: true, Steps: []step{{0, neutral}}, None: "not reported"},
				number{heading: heading{"Samples/s", "Of all ranks, if the client sends batch sizes.", 3, "short"}, Decimals: 1,
					Expr: `sum(run:ml_samples:rate5m{` + chosen + `})`, Past: true, Steps: []step{{0, neutral}}, None: "not reported"},
				number{heading: heading{"Goodput", "Productive time divided by total time, over 15 minutes; the minimum of the chosen runs. Time of unknown use counts as unknown, not as idle.", 3, "percentunit"},
					Expr: `min(` + whileAtWork(`run:goodput:ratio_rate15m{`+chosen+`}`) + `)`, Past: true, Steps: []step{{0, bad}, {0.5, warning}, {0.8, good}}},
				number{heading: heading{"MFU", "Model FLOPs utilization: FLOPs per token × tokens/s ÷ peak FLOP/s of the GPUs (gpu_model:peak_flops in training.yaml, dense bfloat16). Missing if `flops_per_token` or a GPU's peak is not set.", 3, "percentunit"}, Decimals: 1,
					Expr: `avg(run:mfu:ratio_rate5m{` + chosen + `})`, Past: true, Steps: []step{{0, bad}, {0.2, warning}, {0.35, good}}, None: "not reported"},
				number{heading: heading{"Since the last step", "Of the run that has waited longest. A wait of more than a few steps with a busy GPU is usually a collective that hangs.", 3, "s"},
					Expr: `max(time() - max by (ml_run_id) (ml_run_last_step_timestamp_seconds{` + chosen + `}) and on (ml_run_id) run:state{ml_run_state=~"running|stalled"})`, Steps: []step{{0, good}, {60, warning}, {300, bad}}, None: "ended"},
				number{heading: heading{"Attempts", "Of the run with the most attempts. 1 means no restart.", 3, "none"},
					Expr: `max(run:ml_attempts:max{` + chosen + `})`, Steps: []step{{0, good}, {2, warning}, {5, bad}}},
				number{heading: heading{"NaN or infinite", "Losses, metrics and learning rates in this time that were NaN or infinite. The graphs below omit them.", 3, "none"},
					Expr: orZero(`sum(` + inRange("ml_nonfinite_total", chosen+`,ml_signal!="gradient_norm"`, "job") + `)`), Steps: []step{{0, good}, {1, bad}}},
			}},
			{Title: "Use of time", Height: 9, Panels: []panel{
				graph{heading: heading{"Time of the run by state", "Every moment of every rank is in one state; over 15 minutes, the mean of the chosen runs. productive is goodput; other is time that no span covers; unknown is silence. From ml_run_time. Host time: CUDA may continue after a span.", 12, "percentunit"},
					Whole:   true,
					Queries: []query{{Expr: `avg by (ml_run_state) (` + whileAtWork(`run:ml_run_time:ratio_rate15m{`+chosen+`}`) + `)`, Legend: "{{ml_run_state}}"}}, Colors: timeColors},
				graph{heading: heading{"Time of a step by phase (host time)", "Mean of all steps and ranks. Host time, without synchronization: a GPU may still be working on earlier phases. other is time that no span covers.", 12, "s"},
					Stack: true,
					Queries: []query{{Expr: `sum by (ml_phase) (rate(ml_step_duration_seconds_sum{` + chosen + `,ml_phase!="step"}[$__rate_interval])) / on () group_left () (sum(rate(ml_step_duration_seconds_count{` + chosen + `,ml_phase="other"}[$__rate_interval])) > 0)`,
						Legend: "{{ml_phase}}"}}, Colors: phaseColors},
			}},
			{Height: 8, Panels: []panel{
				graph{heading: heading{"Steps per second", "Of each run that trains or should train. A run that slows down shows here first.", 8, "none"},
					Queries: []query{{Expr: whileAtWork(`run:ml_steps:rate5m{` + chosen + `}`), Legend: "{{ml_run_id}}"}},
					Links:   []link{toTraces("Its traces", ofLabel("job"), "ml.run.id", ofLabel("ml_run_id"))}},
				graph{heading: heading{"Slow steps (host time)", "Median, 95th and 99th percentile of all steps and ranks. If the percentiles grow while the median stays, look for slow ranks or irregular delays; the graph above shows the phase. Estimated from buckets that double, so wrong by a factor of two at most.", 8, "s"},
					Queries: []query{
						{Expr: quantile("0.5", "ml_step_duration_seconds", wholeSteps, "ml_phase"), Legend: "median"},
						{Expr: quantile("0.95", "ml_step_duration_seconds", wholeSteps, "ml_phase"), Legend: "slow 5 %"},
						{Expr: quantile("0.99", "ml_step_duration_seconds", wholeSteps, "ml_phase"), Legend: "slow 1 %"},
					}},
				bars{heading: heading{"Which rank waits for data", "How much longer than the median rank of its run each rank waits for data, per step, over 15 minutes. Only data loading is compared: in the backward pass and in whole steps all ranks wait for the slowest one.", 8, "s"},
					Queries: []query{{Expr: `sort_desc(max by (ml_run_id, ml_rank_global, host_name) (rank:ml_straggler_seconds:per_step15m{` + chosen + `,ml_rank_global!=""}) > 0)`, Legend: "rank {{ml_rank_global}} on {{host_name}}"}},
					Steps:   []step{{0, good}, {0.01, warning}, {0.1, bad}}},
			}},
			{Title: "Learning", Height: 8, Panels: []panel{
				graph{heading: heading{"Loss", "The latest loss of each scope (batch, epoch, validation) that a client sends, for each task that it names. TorchTel and TuFT send none.", 12, "short"},
					Queries: []query{{Expr: `max by (ml_run_id, ml_loss_scope, ml_task) (` + newest(`ml_loss{`+chosen+`}`) + `)`, Legend: "{{ml_run_id}} {{ml_loss_scope}} {{ml_task}}"}}},
				graph{heading: heading{"Validation", "Validation metrics, under the client's names.", 6, "short"},
					Queries: []query{{Expr: `max by (ml_run_id, ml_metric) (` + newest(`ml_validation_metric{`+chosen+`}`) + `)`, Legend: "{{ml_run_id}} {{ml_metric}}"}}},
				graph{heading: heading{"Learning rate", "As last reported by the client.", 6, "sci"},
					Queries: []query{{Expr: whileAtWork(`max by (ml_run_id) (` + newest(`ml_learning_rate{`+chosen+`}`) + `)`), Legend: "{{ml_run_id}}"}}},
			}},
			{Title: "Data and GPUs", Height: 8, Panels: []panel{
				graph{heading: heading{"Work done", "Samples of all ranks, batches, and tokens if the tokens of a step are known.", 8, "short"},
					Queries: []query{
						{Expr: whileAtWork(`run:ml_samples:rate5m{` + chosen + `}`), Legend: "{{ml_run_id}} samples/s"},
						{Expr: whileAtWork(`sum by (ml_run_id) (rate(ml_batches_total{` + chosen + `}[5m]))`), Legend: "{{ml_run_id}} batches/s"},
					}},
				graph{heading: heading{"Utilization of its GPUs", "For the GPU of each rank, the fraction of SMs in use, or before Hopper the fraction of time. A kernel that waits for another rank counts as work.", 8, "percentunit"},
					Top: 1,
					Queries: []query{{
						Expr: `max by (host_name, nvidia_gpu_index, hw_id) (nvidia_gpu_sm_utilization_ratio or on (host_name, hw_id) hw_gpu_utilization_ratio{hw_gpu_task="general"}) and on (host_name, hw_id) run_gpu:share:ratio{ml_run_id=~"$run"}`, Legend: "{{host_name}} GPU {{nvidia_gpu_index}}"}},
					Links: []link{toBoard("This GPU", "gpus", "gpu", ofLabel("hw_id"))}},
				graph{heading: heading{"Memory of its GPUs", "The memory of all its GPUs by use. allocated: by tensors; cached: held by the allocator beyond that; process_other: context, libraries and what the client does not report; other_processes; driver; free. Available only if the client sends its allocator's sizes and each rank has one GPU.", 8, "bytes"},
					Stack:   true,
					Queries: []query{{Expr: `sum by (ml_gpu_memory_kind) (ml_gpu_memory_breakdown_bytes{ml_run_id=~"$run"})`, Legend: "{{ml_gpu_memory_kind}}"}},
					Colors:  memoryColors},
			}},
		},
	}
}

var memoryColors = []shown{
	{"allocated", "", "blue"}, {"cached", "", "light-blue"}, {"process_other", "", "purple"},
	{"other_processes", "", "orange"}, {"driver", "", "gray"}, {"free", "", "dark-green"},
}
