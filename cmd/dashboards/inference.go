package main

func inferenceBoard() *board {
	const chosen = ofService
	role := chosen + `,ml_operation!="train_step"`
	return &board{
		Name: "inference", Title: "Inference and agents", From: "now-1h",
		About: "Requests to models and their tokens, and the calls of agents and services: number, duration, failures and waiting time.",
		Variables: []variable{
			{"service", "Service", "The program: service.name, preceded by service.namespace.", `{__name__=~"ml_requests_total|ml_call_duration_seconds_count|server:tokens:rate5m|gateway:tokens:rate5m"}`, "job"},
		},
		Marks: []mark{
			{Name: "Alerts", Color: "red", Expr: `max by (alertname, severity, job) (ALERTS{alertstate="firing",` + chosen + `})`},
		},
		Rows: []row{
			{Height: 4, Panels: []panel{
				number{heading: heading{"Tokens in/s", "Input tokens of all requests, including cached ones. Tokens that two spans report count once. TaskWeaver's are estimates.", 4, "short"}, Decimals: 1,
					Expr: orZero(`sum(rate(ml_tokens_total{` + role + `,gen_ai_token_type="input"}[$__rate_interval]))`), Past: true, Steps: []step{{0, neutral}}},
				number{heading: heading{"Tokens out/s", "Output tokens, including reasoning.", 4, "short"}, Decimals: 1,
					Expr: orZero(`sum(rate(ml_tokens_total{` + role + `,gen_ai_token_type="output"}[$__rate_interval]))`), Past: true, Steps: []step{{0, neutral}}},
				number{heading: heading{"Requests/s", "Requests to models; each attempt counts.", 4, "none"}, Decimals: 2,
					Expr: `sum(rate(ml_requests_total{` + chosen + `}[$__rate_interval]))`, Past: true, Steps: []step{{0, neutral}}},
				number{heading: heading{"Requests that fail", "The fraction of requests with an error type.", 4, "percentunit"}, Decimals: 1,
					Expr: `(sum(rate(ml_requests_total{` + chosen + `,error_type!=""}[$__rate_interval])) or vector(0)) / (sum(rate(ml_requests_total{` + chosen + `}[$__rate_interval])) > 0)`, Past: true, Steps: []step{{0, good}, {0.01, warning}, {0.05, bad}}},
				number{heading: heading{"Calls that fail", "The fraction of calls (code, plugins, remote functions) that ended with an error.", 4, "percentunit"}, Decimals: 1,
					Expr: `(sum(rate(ml_call_duration_seconds_count{` + chosen + `,result="error"}[$__rate_interval])) or vector(0)) / (sum(rate(ml_call_duration_seconds_count{` + chosen + `}[$__rate_interval])) > 0)`, Past: true, Steps: []step{{0, good}, {0.01, warning}, {0.05, bad}},
					Links: []link{{"Errors", "/d/" + uid("errors") + "?${service:queryparam}&${__url_time_range}"}}},
				number{heading: heading{"Workers busy", "The fraction of the workers of all pools that have a call. At 100 % calls wait.", 4, "percentunit"},
					Expr: `sum(` + once("ml_pool_busy", chosen, "pool") + `) / (sum(` + once("ml_pool_size", chosen, "pool") + `) > 0)`, Past: true, Steps: []step{{0, good}, {0.8, warning}, {1, bad}}, None: "no pool"},
			}},
			{Title: "Tokens and requests", Height: 8, Panels: []panel{
				graph{heading: heading{"Tokens per second", "By program, agent role, model and direction, from spans. A client without token counts on its spans may appear in the next graph.", 8, "short"},
					Queries: []query{{Expr: perSecond("ml_tokens_total", role, "job, ml_role, gen_ai_request_model, gen_ai_token_type"), Legend: "{{job}} {{ml_role}} {{gen_ai_request_model}} {{gen_ai_token_type}}", Exemplars: true}}},
				graph{heading: heading{"Tokens per second by clients' own metrics", "ml_token_throughput, from counters and histograms that clients send. Series with basis “mean” are the mean speed of a request: never add them up. The others are totals; a gateway and its servers count the same tokens.", 8, "short"},
					Queries: []query{
						{Expr: `sum by (job, gen_ai_request_model, gen_ai_token_type, ml_throughput_basis, ml_side) (ml_token_throughput_per_second{` + chosen + `,ml_throughput_basis!="mean"})`, Legend: "{{job}} {{gen_ai_request_model}} {{gen_ai_token_type}} ({{ml_throughput_basis}}) {{ml_side}}"},
						{Expr: `max by (job, gen_ai_request_model, gen_ai_token_type) (ml_token_throughput_per_second{` + chosen + `,ml_throughput_basis="mean"})`, Legend: "{{job}} {{gen_ai_request_model}} {{gen_ai_token_type}} (mean)"},
					}},
				bars{heading: heading{"Where the tokens went", "In this time, by program and agent role.", 8, "short"},
					Queries: []query{{Expr: `sort_desc(` + inRange("ml_tokens_total", role, "job, ml_role, gen_ai_token_type") + `)`, Legend: "{{job}} {{ml_role}} {{gen_ai_token_type}}"}},
					Steps:   []step{{0, neutral}}},
			}},
			{Height: 8, Panels: []panel{
				graph{heading: heading{"Requests per second", "By program, operation, role and model.", 8, "none"},
					Queries: []query{{Expr: perSecond("ml_requests_total", chosen, "job, ml_operation, ml_role, gen_ai_request_model"), Legend: "{{job}} {{ml_operation}} {{ml_role}} {{gen_ai_request_model}}", Exemplars: true}}},
				graph{heading: heading{"Speed of a request: tokens per second", "Output tokens divided by duration of each request, by program: the median, and the speed that 95 % of the requests exceed. Basis “span” is a lower bound, because it includes the time to the first token.", 8, "none"},
					Queries: []query{
						{Expr: quantile("0.5", "ml_request_token_throughput_per_second", chosen, "job"), Legend: "{{job}} median", Exemplars: true},
						{Expr: quantile("0.05", "ml_request_token_throughput_per_second", chosen, "job"), Legend: "{{job}} slow 5 %"},
					}},
				graph{heading: heading{"Fine-tuning service: queue and sessions", "TuFT's own gauges: waiting and running futures, models in training, sampling sessions.", 8, "none"},
					Queries: []query{
						{Expr: `sum by (queue_state) (tuft_futures_queue_length{` + chosen + `})`, Legend: "futures {{queue_state}}"},
						{Expr: `sum by (base_model) (tuft_training_models_active{` + chosen + `})`, Legend: "models that train: {{base_model}}"},
						{Expr: `sum by (base_model) (tuft_sampling_sessions_active{` + chosen + `})`, Legend: "sessions that sample: {{base_model}}"},
					}},
			}},
			{Title: "Inference servers and gateways", Height: 8, Panels: []panel{
				graph{heading: heading{"Requests that run and that wait", "In servers and, where they have a queue, in gateways: vLLM, SGLang, TensorRT-LLM, Triton, llama.cpp, Dynamo, llm-d.", 8, "none"},
					Queries: []query{
						{Expr: ofServers("sum", "", "server:requests_running:sum"), Legend: "{{job}} {{gen_ai_request_model}} run"},
						{Expr: ofServers("sum", "", "server:requests_waiting:sum"), Legend: "{{job}} {{gen_ai_request_model}} wait"},
						{Expr: ofServers("sum", "", "gateway:requests_waiting:sum"), Legend: "{{job}} {{gen_ai_request_model}} wait in the gateway"},
					}},
				graph{heading: heading{"KV cache in use", "Of the fullest engine. At 100 % requests wait, or lose their blocks and are computed again. llama.cpp does not report it.", 8, "percentunit"}, Top: 1, Steps: []step{{0, good}, {0.95, warning}},
					Queries: []query{{Expr: ofServers("max", "instance, ", "server:kv_cache_utilization:max"), Legend: "{{job}} {{instance}} {{gen_ai_request_model}}"}}},
				graph{heading: heading{"Tokens per second by side", "What servers and gateways count themselves. Both count the same tokens, and so does a client: never add up two sides.", 8, "short"},
					Queries: []query{
						{Expr: ofServers("sum", "ml_side, gen_ai_token_type, ", "server:tokens:rate5m"), Legend: "{{ml_side}} {{job}} {{gen_ai_request_model}} {{gen_ai_token_type}}"},
						{Expr: ofServers("sum", "ml_side, gen_ai_token_type, ", "gateway:tokens:rate5m"), Legend: "{{ml_side}} {{job}} {{gen_ai_request_model}} {{gen_ai_token_type}}"},
					}},
			}},
			{Height: 8, Panels: []panel{
				graph{heading: heading{"Time to the first token: 95 % are faster", "By server or gateway and model, estimated from the buckets of its own histogram. Triton and llama.cpp have none.", 8, "s"},
					Queries: []query{
						{Expr: ofServers("max", "instance, ", "server:time_to_first_token_seconds:p95_5m"), Legend: "{{job}} {{instance}} {{gen_ai_request_model}}"},
						{Expr: ofServers("max", "instance, ", "gateway:time_to_first_token_seconds:p95_5m"), Legend: "{{job}} {{instance}} {{gen_ai_request_model}}"},
					}},
				graph{heading: heading{"Wait in servers and time per output token: 95 % are faster", "The wait before a server begins with a request, and the time for each token after the first.", 8, "s"},
					Queries: []query{
						{Expr: ofServers("max", "instance, ", "server:queue_time_seconds:p95_5m"), Legend: "{{job}} {{instance}} wait"},
						{Expr: ofServers("max", "instance, ", "server:time_per_output_token_seconds:p95_5m"), Legend: "{{job}} {{instance}} per token"},
					}},
				graph{heading: heading{"Requests that ended per second, by reason", "vLLM and TensorRT-LLM report the reason, Triton that a request failed. An ensemble of Triton counts a request for each of its models, too.", 8, "none"},
					Queries: []query{{Expr: ofServers("sum", "gen_ai_response_finish_reasons, ", "server:requests:rate5m"), Legend: "{{job}} {{gen_ai_request_model}} {{gen_ai_response_finish_reasons}}"}}},
			}},
			{Title: "Calls and their workers", Height: 8, Panels: []panel{
				graph{heading: heading{"Calls per second", "Snakepit's calls into Python, TuFT's operations, TaskWeaver's code and plugins.", 8, "none"},
					Queries: []query{{Expr: perSecond("ml_call_duration_seconds_count", chosen, "job, ml_library, ml_function, result"), Legend: "{{job}} {{ml_library}} {{ml_function}} {{result}}"}}},
				graph{heading: heading{"Slow calls: 95th percentile", "By program and function. Estimated from buckets that quadruple, so wrong by a factor of four at most. A diamond is one call; click it for its trace.", 8, "s"},
					Queries: []query{{Expr: quantile("0.95", "ml_call_duration_seconds", chosen, "job, ml_function"), Legend: "{{job}} {{ml_function}}", Exemplars: true}}},
				graph{heading: heading{"Where calls wait: mean times", "The parts that clients report: waiting for a worker, encoding the arguments, and running the function.", 8, "s"},
					Queries: []query{
						{Expr: meanTime("ml_call_queue_time_seconds", chosen), Legend: "{{job}} queue"},
						{Expr: meanTime("ml_call_serialize_time_seconds", chosen), Legend: "{{job}} serialize"},
						{Expr: meanTime("ml_call_python_time_seconds", chosen), Legend: "{{job}} function"},
					}},
			}},
			{Height: 8, Panels: []panel{
				graph{heading: heading{"Workers", "Of each pool and instance, as last reported.", 8, "none"},
					Queries: []query{
						{Expr: `sum by (job, pool, service_instance_id) (` + once("ml_pool_busy", chosen, "pool") + `)`, Legend: "{{service_instance_id}} {{pool}} busy"},
						{Expr: `sum by (job, pool, service_instance_id) (` + once("ml_pool_size", chosen, "pool") + `)`, Legend: "{{service_instance_id}} {{pool}} size"},
					}},
				graph{heading: heading{"Slow calls per second", "Calls that took longer than a second.", 8, "none"},
					Queries: []query{{Expr: perSecond("ml_calls_slow_total", chosen, "job, ml_function"), Legend: "{{job}} {{ml_function}}", Exemplars: true}}},
				graph{heading: heading{"GPU memory of workers", "As the clients' allocators report it: allocated by tensors, and reserved for them.", 8, "bytes"},
					Queries: []query{{Expr: `sum by (service_instance_id, device, kind) (` + once("ml_gpu_memory_usage_bytes", chosen, "device, kind") + `)`, Legend: "{{service_instance_id}} {{device}} {{kind}}"}}},
			}},
		},
	}
}

// meanTime is the mean of a histogram of each program.
func meanTime(metric, selector string) string {
	return `sum by (job) (rate(` + metric + `_sum{` + selector + `}[$__rate_interval])) / (sum by (job) (rate(` + metric + `_count{` + selector + `}[$__rate_interval])) > 0)`
}

// ofServers aggregates a recorded series of inference servers or gateways by job
// and model, and by the labels in by, each followed by a comma.
func ofServers(aggregation, by, series string) string {
	return aggregation + ` by (` + by + `job, gen_ai_request_model) (` + series + `{` + ofService + `})`
}
