package main

func gpusBoard() *board {
	const chosen = ofGPU
	const name = "{{host_name}} GPU {{nvidia_gpu_index}}"
	each := func(expr string) string { return `max by (host_name, nvidia_gpu_index, hw_id) (` + expr + `)` }
	sm := each(`nvidia_gpu_sm_utilization_ratio{` + chosen + `}`)
	toRun := toBoard("How does its run train?", "training", "run", ofLabel("ml_run_id"))
	return &board{
		Name: "gpus", Title: "GPUs", From: "now-1h",
		About: "Utilization, memory by workload, and health of GPUs. The gpu receiver reads NVML and makes no call that wakes or configures a GPU.",
		Variables: []variable{
			{"host", "Host", "The machine.", "hw_status", "host_name"},
			{"gpu", "GPU", "hw.id, the UUID of the GPU or MIG device. The index may change with a restart.", `hw_status{host_name=~"$host"}`, "hw_id"},
		},
		Marks: []mark{
			{Name: "Alerts", Color: "red", Expr: `max by (alertname, severity, host_name, hw_id) (ALERTS{alertstate="firing",hw_id!="",` + chosen + `})`},
		},
		Rows: []row{
			{Height: 4, Panels: []panel{
				number{heading: heading{"SMs at work", "The fraction of SMs in use, mean of the chosen GPUs; Hopper and newer report it. Time busy alone is 100 % while a single SM works.", 4, "percentunit"},
					Expr: `avg(` + sm + `)`, Past: true, Steps: []step{{0, bad}, {0.4, warning}, {0.7, good}}, None: "not reported"},
				number{heading: heading{"Time busy", "The fraction of time in which any kernel ran: what nvidia-smi calls utilization, but as the mean of the driver's samples.", 4, "percentunit"},
					Expr: `avg(` + each(`hw_gpu_utilization_ratio{`+chosen+`,hw_gpu_task="general"}`) + `)`, Past: true, Steps: []step{{0, bad}, {0.4, warning}, {0.7, good}}},
				number{heading: heading{"Memory used", "Of all chosen GPUs, including reserved memory. Frameworks that preallocate all memory show 100 %.", 4, "percentunit"},
					Expr: `sum(` + each(`hw_gpu_memory_usage_bytes{`+chosen+`}`) + `) / sum(` + each(`hw_gpu_memory_limit_bytes{`+chosen+`}`) + `)`, Past: true, Steps: []step{{0, good}, {0.9, warning}, {0.97, bad}}},
				number{heading: heading{"Power", "From the energy counters, over one minute, so that peaks between two readings count.", 4, "watt"}, Decimals: 1,
					Expr: `sum(max by (host_name, hw_id) (rate(hw_energy_joules_total{` + chosen + `}[1m])))`, Past: true, Steps: []step{{0, neutral}}},
				number{heading: heading{"Hottest", "The highest temperature of the GPUs and their memories.", 4, "celsius"},
					Expr: `max(hw_temperature_celsius{` + chosen + `})`, Past: true, Steps: []step{{0, good}, {83, warning}, {93, bad}}},
				number{heading: heading{"Errors (XID)", "Errors that the driver reported in this time. Codes 13, 31, 43 and 45 are usually errors of a program. The log record of the same time has the meaning.", 4, "none"},
					Expr: orZero(`sum(` + xidsInRange(chosen, "nvidia_gpu_xid_code") + `)`), Steps: []step{{0, good}, {1, warning}}},
			}},
			{Height: 7, Panels: []panel{
				table{heading: heading{"GPUs", "State: ok, degraded, predicted_failure (a memory row must be remapped) or failed. “Do” is the action that the driver recommends. The source replay means recorded data.", 24, "short"},
					SortBy: "Host", Ascending: true, None: "no GPU: see the state of the driver below",
					Queries: []string{
						`max by (host_name, nvidia_gpu_index, hw_id, hw_state) (hw_status{` + chosen + `}) == 1`,
						`max by (host_name, nvidia_gpu_index, hw_id, hw_name, hw_driver_version, nvidia_gpu_source) (nvidia_gpu_info{` + chosen + `})`,
						sm,
						each(`hw_gpu_utilization_ratio{` + chosen + `,hw_gpu_task="general"}`),
						each(`hw_gpu_memory_usage_bytes{` + chosen + `}`),
						each(`hw_gpu_memory_utilization_ratio{` + chosen + `}`),
						each(`hw_temperature_celsius{` + chosen + `,hw_sensor_location="gpu"}`),
						each(`hw_power_watts{` + chosen + `}`),
						each(`nvidia_gpu_power_limit_watts{` + chosen + `,nvidia_gpu_power_limit_type="enforced"}`),
						each(`nvidia_gpu_recovery_action{` + chosen + `}`),
						`count by (host_name, nvidia_gpu_index, hw_id) (` + workloads("nvidia_gpu_workload_memory_usage_bytes", chosen) + `)`,
					},
					Hidden: []string{"A", "B"},
					Columns: []column{
						{Field: "host_name", Name: "Host", Width: 130},
						{Field: "nvidia_gpu_index", Name: "Index", Width: 80},
						{Field: "hw_id", Name: "GPU", Width: 350},
						{Field: "hw_name", Name: "Model", Width: 190},
						{Field: "hw_state", Name: "State", Width: 90, Values: []shown{{"ok", "ok", good}, {"degraded", "degraded", warning}, {"predicted_failure", "predicted failure", warning}, {"failed", "FAILED", bad}}},
						{Field: "J", Name: "Do", Unit: "none", Width: 100, Values: []shown{{"0", "–", quiet}, {"1", "reset", bad}, {"2", "reboot", bad}, {"3", "drain", warning}, {"4", "drain, reset", warning}, {"5", "recover IMEX", warning}}},
						{Field: "C", Name: "SMs", Unit: "percentunit", Width: 70, Steps: []step{{0, bad}, {0.4, warning}, {0.7, good}}},
						{Field: "D", Name: "Busy", Unit: "percentunit", Width: 70, Steps: []step{{0, bad}, {0.4, warning}, {0.7, good}}},
						{Field: "E", Name: "Memory", Unit: "bytes", Decimals: 1, Width: 90},
						{Field: "F", Name: "of all", Unit: "percentunit", Width: 120, Bar: true, Top: 1, Steps: []step{{0, good}, {0.9, warning}, {0.97, bad}}},
						{Field: "G", Name: "Temp.", Unit: "celsius", Width: 75, Steps: []step{{0, good}, {83, warning}, {93, bad}}},
						{Field: "H", Name: "Power", Unit: "watt", Width: 80},
						{Field: "I", Name: "Limit", Unit: "watt", Width: 80},
						{Field: "K", Name: "Workloads", Unit: "none", Width: 90},
						{Field: "hw_driver_version", Name: "Driver", Width: 105},
						{Field: "nvidia_gpu_source", Name: "Source"},
					}},
			}},
			{Title: "Work", Height: 8, Panels: []panel{
				graph{heading: heading{"SMs at work on each", "The fraction of SMs in use since the previous reading. Compare with the next graph: a busy GPU with few SMs in use has kernels that are too small.", 6, "percentunit"},
					Top: 1, Queries: []query{{Expr: sm, Legend: name}}},
				graph{heading: heading{"Time busy, and the highest sample", "Mean and maximum of the driver's samples since the previous reading.", 6, "percentunit"},
					Top: 1, Queries: []query{
						{Expr: each(`hw_gpu_utilization_ratio{` + chosen + `,hw_gpu_task="general"}`), Legend: name},
						{Expr: each(`nvidia_gpu_utilization_peak_ratio{` + chosen + `,hw_gpu_task="general"}`), Legend: name + " peak"},
					}},
				graph{heading: heading{"Pipes", "The fraction of time in which each pipe of the SMs worked, mean of the chosen GPUs. Training in bfloat16 should use the tensor pipe; if it is idle, most of the GPU is unused.", 6, "percentunit"},
					Queries: []query{{Expr: `avg by (nvidia_gpu_pipe) (nvidia_gpu_pipe_utilization_ratio{` + chosen + `})`, Legend: "{{nvidia_gpu_pipe}}"}}},
				graph{heading: heading{"Memory traffic", "The fraction of time in which memory was read or written.", 6, "percentunit"},
					Top: 1, Queries: []query{{Expr: each(`nvidia_gpu_dram_utilization_ratio{` + chosen + `}`), Legend: name}}},
			}},
			{Title: "Memory", Height: 9, Panels: []panel{
				graph{heading: heading{"Used by each workload", "Memory of processes, added up by workload. The rest up to the limit is free or used by the driver. From the driver, so memory that a framework's allocator holds counts as used.", 12, "bytes"},
					Stack: true,
					Queries: []query{{Expr: `sum by (host_name, nvidia_gpu_index, ml_run_id, service_name, owner) (` + owner(workloads("nvidia_gpu_workload_memory_usage_bytes", chosen)) + `)`,
						Legend: "GPU {{nvidia_gpu_index}} {{ml_run_id}} {{service_name}} {{owner}}"}},
					Links: []link{toRun}},
				graph{heading: heading{"Used, and the limit", "Of each GPU.", 6, "bytes"},
					Queries: []query{
						{Expr: each(`hw_gpu_memory_usage_bytes{` + chosen + `}`), Legend: name},
						{Expr: each(`hw_gpu_memory_limit_bytes{` + chosen + `}`), Legend: name + " limit"},
					}},
				graph{heading: heading{"Where it went", "Available if a client sends its allocator's sizes: allocated by tensors, cached by the allocator, the rest of the process, other processes, the driver, free.", 6, "bytes"},
					Stack: true, Queries: []query{{Expr: `sum by (ml_gpu_memory_kind) (ml_gpu_memory_breakdown_bytes{` + chosen + `})`, Legend: "{{ml_gpu_memory_kind}}"}}, Colors: memoryColors},
			}},
			{Title: "Power, heat and clocks", Height: 8, Panels: []panel{
				graph{heading: heading{"Power and its limit", "As the driver reports it, with the enforced limit.", 6, "watt"},
					Queries: []query{
						{Expr: each(`hw_power_watts{` + chosen + `}`), Legend: name},
						{Expr: each(`nvidia_gpu_power_limit_watts{` + chosen + `,nvidia_gpu_power_limit_type="enforced"}`), Legend: name + " limit"},
					}},
				graph{heading: heading{"Temperature", "Of the GPU and of its memory. Most GPUs slow down between 83 and 93 °C.", 6, "celsius"},
					Queries: []query{{Expr: `max by (host_name, nvidia_gpu_index, hw_sensor_location) (hw_temperature_celsius{` + chosen + `})`, Legend: name + " {{hw_sensor_location}}"}},
					Steps:   []step{{0, good}, {83, warning}, {93, bad}}},
				graph{heading: heading{"Held back", "The fraction of time in which clocks were reduced, by reason. sw_power_cap is the power limit and normal under load; thermal reasons are not.", 6, "percentunit"},
					Queries: []query{{Expr: `max by (host_name, nvidia_gpu_index, nvidia_gpu_throttle_reason) (rate(nvidia_gpu_throttle_time_seconds_total{` + chosen + `}[$__rate_interval])) > 0`, Legend: name + " {{nvidia_gpu_throttle_reason}}"}}},
				graph{heading: heading{"Clock of the SMs", "If the clock falls under load, power or temperature limits it.", 6, "hertz"},
					Queries: []query{{Expr: each(`nvidia_gpu_clock_frequency_hertz{` + chosen + `,nvidia_gpu_clock_domain="sm"}`), Legend: name}}},
			}},
			{Title: "Health", Height: 8, Panels: []panel{
				states{heading: heading{"State", "Derived from the driver's responses, its recovery action, errors (XID) and memory repairs. A GPU that fell off the bus stays here as failed.", 8, "none"},
					Queries: []query{{Expr: each(`hw_status{` + chosen + `,hw_state="ok"} or hw_status{` + chosen + `,hw_state="degraded"} * 2 or hw_status{` + chosen + `,hw_state="predicted_failure"} * 3 or hw_status{` + chosen + `,hw_state="failed"} * 4`), Legend: name}},
					Values:  []shown{{"1", "ok", good}, {"2", "degraded", warning}, {"3", "predicted failure", "yellow"}, {"4", "failed", bad}}},
				bars{heading: heading{"Errors (XID) by code", "In this time. The log record of the same time has the meaning of a code.", 8, "none"}, Counts: true,
					Queries: []query{{Expr: `sort_desc(` + xidsInRange(chosen, "host_name, nvidia_gpu_index, nvidia_gpu_xid_code") + `)`, Legend: name + " XID {{nvidia_gpu_xid_code}}"}},
					Steps:   []step{{0, warning}, {10, bad}}},
				graph{heading: heading{"Errors of memory and links", "In the last hour: memory errors that ECC corrected or could not correct, replaced memory rows, repeated PCIe transfers, and NVLink errors.", 8, "none"},
					Queries: []query{
						{Expr: `sum by (host_name, nvidia_gpu_index, error_type) (increase(hw_errors_total{` + chosen + `}[1h]))`, Legend: name + " ECC {{error_type}}"},
						{Expr: `sum by (host_name, nvidia_gpu_index) (increase(nvidia_gpu_memory_remapped_rows_total{` + chosen + `}[1h]))`, Legend: name + " rows replaced"},
						{Expr: `sum by (host_name, nvidia_gpu_index) (increase(nvidia_gpu_pcie_replays_total{` + chosen + `}[1h]))`, Legend: name + " PCIe replays"},
						{Expr: `sum by (host_name, nvidia_gpu_index) (increase(nvidia_gpu_nvlink_errors_total{` + chosen + `}[1h]))`, Legend: name + " NVLink errors"},
					}},
			}},
			{Height: 7, Panels: []panel{
				graph{heading: heading{"NVLink traffic", "Of all links of a GPU, by direction.", 8, "binBps"},
					Queries: []query{{Expr: `max by (host_name, nvidia_gpu_index, network_io_direction) (rate(nvidia_gpu_nvlink_io_bytes_total{` + chosen + `}[$__rate_interval]))`, Legend: name + " {{network_io_direction}}"}}},
				table{heading: heading{"Sources of attribution", "The sources from which the gpu receiver learns the owner of a process. denied: a privilege is missing, see the README; absent: this host has none.", 8, "short"},
					SortBy: "Host", Ascending: true,
					Queries: []string{`max by (host_name, nvidia_gpu_attribution_source, nvidia_gpu_attribution_state) (nvidia_gpu_attribution{host_name=~"$host"}) == 1`},
					Hidden:  []string{"A"},
					Columns: []column{
						{Field: "host_name", Name: "Host", Width: 160},
						{Field: "nvidia_gpu_attribution_source", Name: "Source", Width: 140},
						{Field: "nvidia_gpu_attribution_state", Name: "State", Values: []shown{{"ok", "ok", good}, {"denied", "denied", bad}, {"absent", "absent", quiet}}},
					}},
				table{heading: heading{"State of the driver", "ok, or why the driver cannot be read. version_mismatch needs a restart of the collector; all other states are retried automatically.", 8, "short"},
					SortBy: "Host", Ascending: true,
					Queries: []string{`max by (host_name, nvidia_gpu_driver_state) (nvidia_gpu_driver_state{host_name=~"$host"}) == 1`},
					Hidden:  []string{"A"},
					Columns: []column{
						{Field: "host_name", Name: "Host", Width: 160},
						{Field: "nvidia_gpu_driver_state", Name: "State", Values: []shown{{"ok", "ok", good}, {"unresponsive", "unresponsive", bad}, {"version_mismatch", "version mismatch", bad}, {"failed", "failed", bad}}},
					}},
			}},
		},
	}
}
