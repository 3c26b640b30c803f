package view

import (
	"math"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// family is what the samples of a metric are on the page.
type family func(n numbers, labels harness.Labels, value float64)

// families has the metrics that the page shows as they are, or adds up.
var families = map[string]family{
	"ml_steps_total":               ofRun("steps", numbers.most),
	"ml_batches_total":             ofRun("batches", numbers.most),
	"ml_samples_total":             ofRun("samples", numbers.add),
	"ml_errors_total":              ofRun("errors", numbers.add),
	"ml_epoch":                     ofRun("epoch", numbers.most),
	"ml_run_attempts_total":        ofRun("attempts", numbers.most),
	"ml_run_gpus":                  ofRun("gpus", numbers.add),
	"ml_run_gpu_utilization_ratio": ofRun("gpu utilization", numbers.add),
	"ml_run_goodput_ratio":         ofRun("goodput", numbers.add),
	"ml_run_bound_ratio":           ofState("bound", "ml_run_bound"),
	"ml_run_bound":                 ofState("bound", "ml_run_bound"),
	"ml_run_state":                 ofState("state", "ml_run_state"),
	"ml_run_state_timestamp_seconds": func(n numbers, l harness.Labels, v float64) {
		n.add(math.Round(v*1e3), run(l), "state since")
	},
	"ml_run_step_time_seconds": func(n numbers, l harness.Labels, v float64) {
		n.add(v, run(l), map[string]string{"recent": "step time", "usual": "usual step time"}[l["ml_window"]])
	},
	"ml_tokens_total":   tokens,
	"ml_requests_total": requests,

	"hw_gpu_utilization_ratio": func(n numbers, l harness.Labels, v float64) {
		if l["hw_gpu_task"] == "general" {
			n.add(v, gpu(l), "utilization")
		}
	},
	"hw_gpu_memory_usage_bytes":        ofGPU("used"),
	"hw_gpu_memory_limit_bytes":        ofGPU("limit"),
	"nvidia_gpu_memory_reserved_bytes": ofGPU("reserved"),
	"hw_power_watts":                   ofGPU("power"),
	"nvidia_gpu_power_limit_watts": func(n numbers, l harness.Labels, v float64) {
		if l["nvidia_gpu_power_limit_type"] == "enforced" {
			n.add(v, gpu(l), "power limit")
		}
	},
	"hw_temperature_celsius": func(n numbers, l harness.Labels, v float64) {
		if l["hw_sensor_location"] == "gpu" {
			n.add(v, gpu(l), "temperature")
		}
	},
	"hw_status": func(n numbers, l harness.Labels, v float64) {
		if v == 1 {
			n.add(1, gpu(l), "health", l["hw_state"])
		}
	},

	"ml_pool_size":              ofPool("size"),
	"ml_pool_busy":              ofPool("busy"),
	"ml_pool_idle":              ofPool("idle"),
	"ml_worker_crashes_total":   ofPool("crashes"),
	"ml_breaker_openings_total": ofPool("breakers"),
	"ml_health_alerts_total":    ofPool("alerts"),
}

// ofMetrics returns the numbers of the collector's metrics endpoint, as the page
// defines them.
func ofMetrics(samples []harness.Sample) numbers {
	n := numbers{}
	for _, sample := range samples {
		if read := families[sample.Labels["__name__"]]; read != nil {
			read(n, sample.Labels, sample.Value)
		}
	}
	// A client that reports no optimizer has batches instead of steps.
	for key, value := range n {
		of, isBatches := strings.CutSuffix(key, " batches")
		if !isBatches {
			continue
		}
		delete(n, key)
		if _, known := n[of+" steps"]; !known {
			n[of+" steps"] = value
		}
	}
	n.means(samples)
	return n
}

func run(l harness.Labels) string { return "run " + l["job"] + "/" + l["ml_run_id"] }
func gpu(l harness.Labels) string { return "gpu " + l["host_name"] + "/" + l["hw_id"] }

func ofRun(name string, put func(numbers, float64, ...string)) family {
	return func(n numbers, l harness.Labels, v float64) {
		if l["ml_run_id"] != "" {
			put(n, v, run(l), name)
		}
	}
}

// ofState reads a metric that is 1 for the current value of a label.
func ofState(name, label string) family {
	return func(n numbers, l harness.Labels, v float64) {
		if v == 1 {
			n.add(1, run(l), name, l[label])
		}
	}
}

func ofGPU(name string) family {
	return func(n numbers, l harness.Labels, v float64) { n.add(v, gpu(l), name) }
}

func ofPool(name string) family {
	return func(n numbers, l harness.Labels, v float64) {
		key := []string{"pool " + service(l) + "/" + l["pool"]}
		if strings.HasPrefix(l["__name__"], "ml_pool_") {
			key = append(key, l["service_instance_id"])
		}
		n.add(v, append(key, name)...)
	}
}

// service is the service's name without its namespace, as the page has it.
func service(l harness.Labels) string {
	return l["job"][strings.LastIndex(l["job"], "/")+1:]
}

func model(l harness.Labels) string {
	return "model " + strings.Join([]string{service(l), l["gen_ai_request_model"], l["ml_role"], l["ml_side"]}, "/")
}

func tokens(n numbers, l harness.Labels, v float64) {
	if l["ml_run_id"] != "" && l["ml_side"] != "client" {
		n.add(v, run(l), "tokens")
	}
	if l["ml_operation"] != "train_step" {
		n.add(v, model(l), l["gen_ai_token_type"])
	}
}

func requests(n numbers, l harness.Labels, v float64) {
	n.add(v, model(l), "requests")
	if l["error_type"] != "" {
		n.add(v, model(l), "errors", l["error_type"])
	}
}

// means adds what is a mean over the ranks of a run: the learning rate, and the
// loss of the scope that the page shows. That is the one of all tasks before that
// of one, and of a batch before that of an epoch and of a validation.
func (n numbers) means(samples []harness.Sample) {
	type mean struct{ sum, count float64 }
	rates, losses, shown := map[string]mean{}, map[string]mean{}, map[string]string{}
	for _, s := range samples {
		l := s.Labels
		switch of := run(l); {
		case l["ml_run_id"] == "":
		case l["__name__"] == "ml_learning_rate":
			rates[of] = mean{rates[of].sum + s.Value, rates[of].count + 1}
		case l["__name__"] == "ml_loss":
			turn := l["ml_task"] + map[string]string{"batch": " 1 ", "epoch": " 2 ", "validation": " 3 "}[l["ml_loss_scope"]] + l["ml_loss_scope"]
			switch old, known := shown[of]; {
			case !known || turn < old:
				shown[of], losses[of] = turn, mean{s.Value, 1}
			case turn == old:
				losses[of] = mean{losses[of].sum + s.Value, losses[of].count + 1}
			}
		}
	}
	for of, m := range rates {
		n.add(m.sum/m.count, of, "learning rate")
	}
	for of, m := range losses {
		scope := shown[of][strings.LastIndex(shown[of], " ")+1:]
		n.add(m.sum/m.count, of, "loss", scope)
	}
}
