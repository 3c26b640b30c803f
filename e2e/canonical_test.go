package e2e

import (
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

// present stands for a value that only has to be there and not be empty.
type present struct{}

// canonicalFacts says which canonical attributes a span has to have by what its
// client sent about it: by its resource, its name and its own attributes. It is
// written from the documented vocabulary and shares no code with the collector.
//
// What a span inherits from others is not in it: see inheritedFacts.
func canonicalFacts(span *sentlog.Span) map[string]any {
	facts := map[string]any{}
	switch span.Scenario {
	case "torchtel":
		torchTelFacts(span, facts)
	case "tuft":
		tuftFacts(span, facts)
	case "snakepit":
		snakepitFacts(span, facts)
	case "fx":
		fxFacts(span, facts)
	case "taskweaver":
		taskWeaverFacts(span, facts)
	}
	return facts
}

// rename copies a sent attribute to its canonical name.
func rename(facts map[string]any, from sentlog.Attributes, key, canonical string) {
	if value, ok := from[key]; ok {
		facts[canonical] = value
	}
}

// Everything that TorchTel knows about itself is on the resource; a span has a
// name and no attribute.
func torchTelFacts(span *sentlog.Span, facts map[string]any) {
	facts["ml.run.id"] = present{}
	for key, canonical := range map[string]string{
		"cluster":     "ml.cluster",
		"local_rank":  "ml.rank.local",
		"global_rank": "ml.rank.global",
		"world_size":  "ml.world_size",
		"host":        "host.name",
	} {
		rename(facts, span.Resource, key, canonical)
	}
	switch {
	case span.Name == "train":
		facts["ml.phase"] = "train"
	case span.Name == "autograd.backward":
		facts["ml.phase"] = "backward"
	case span.Name == "dataloader.next":
		facts["ml.phase"] = "data_load"
	case strings.HasSuffix(span.Name, ".forward"):
		facts["ml.phase"] = "forward"
	case strings.HasSuffix(span.Name, ".step"):
		facts["ml.phase"] = "optimizer"
	}
}

// tuftShareKeys are TuFT's keys for work that belongs together.
var tuftShareKeys = map[string]string{
	"tuft.session_id":          "ml.session.id",
	"tuft.training_run_id":     "ml.training_run.id",
	"tuft.sampling_session_id": "ml.sampling_session.id",
	"tuft.request_id":          "ml.request.id",
}

func tuftFacts(span *sentlog.Span, facts map[string]any) {
	for key, canonical := range tuftShareKeys {
		rename(facts, span.Attributes, key, canonical)
	}
	rename(facts, span.Attributes, "tuft.model_id", "ml.training_run.id")
	if strings.HasPrefix(span.Name, "sampling_") {
		rename(facts, span.Attributes, "tuft.lora_id", "ml.sampling_session.id")
	} else {
		rename(facts, span.Attributes, "tuft.lora_id", "ml.training_run.id")
	}
	if run, ok := facts["ml.training_run.id"]; ok {
		facts["ml.run.id"] = run
	}
	for key, canonical := range map[string]string{
		"tuft.operation_type":    "ml.operation",
		"tuft.base_model":        "gen_ai.request.model",
		"tuft.data_count":        "ml.batch.size",
		"tuft.num_micro_batches": "ml.microbatch.count",
		"tuft.learning_rate":     "ml.learning_rate",
	} {
		rename(facts, span.Attributes, key, canonical)
	}
	switch _, operation, _ := strings.Cut(span.Name, "."); operation {
	case "run_optim_step", "optim_step":
		facts["ml.phase"] = "optimizer"
	case "run_sample", "sample":
		facts["ml.phase"] = "sample"
	case "save_checkpoint", "save_state":
		facts["ml.phase"] = "checkpoint"
	}
}

func snakepitFacts(span *sentlog.Span, facts map[string]any) {
	rename(facts, span.Attributes, "snakepit.session_id", "ml.session.id")
	rename(facts, span.Attributes, "snakepit.correlation_id", "ml.request.id")
	rename(facts, span.Attributes, "snakepit.command", "ml.operation")
	rename(facts, span.Attributes, "snakepit.tool", "ml.function")
	rename(facts, span.Attributes, "snakepit.grpc.error_kind", "error.type")
	if strings.HasPrefix(span.Name, "snakepit.") {
		facts["ml.run.id"] = present{}
	}
}

func fxFacts(span *sentlog.Span, facts map[string]any) {
	facts["ml.run.id"] = present{}
	for key, canonical := range map[string]string{
		"epoch":         "ml.epoch",
		"total_epochs":  "ml.epoch.total",
		"train_loss":    "ml.loss",
		"loss":          "ml.loss",
		"val_loss":      "ml.val.loss",
		"step":          "ml.step",
		"batch_index":   "ml.batch.index",
		"batch_size":    "ml.batch.size",
		"error.type":    "error.type",
		"error.message": "error.message",
	} {
		rename(facts, span.Attributes, key, canonical)
	}
	for key, value := range span.Attributes {
		if task, ok := strings.CutPrefix(key, "task."); ok {
			facts["ml.loss.task."+task] = value
		}
		if metric, ok := strings.CutPrefix(key, "val."); ok {
			facts["ml.val."+metric] = value
		}
	}
	// The number in the name is there also where the SDK has dropped the
	// attribute.
	name, number := span.Name, ""
	if at := strings.LastIndexByte(name, '_'); at > 0 {
		name, number = name[:at], name[at+1:]
	}
	n, err := strconv.ParseInt(number, 10, 64)
	numbered := err == nil
	switch {
	case span.Name == "training_epoch", numbered && name == "epoch":
		facts["ml.phase"] = "epoch"
	case span.Name == "batch_processing", numbered && name == "batch":
		facts["ml.phase"] = "batch"
	case span.Name == "validation", numbered && name == "validation":
		facts["ml.phase"] = "validation"
	case span.Name == "data_loading":
		facts["ml.phase"] = "data_load"
	}
	if numbered {
		facts["ml.operation"] = name + "_{n}"
		if name == "epoch" {
			facts["ml.epoch"] = n
		}
	}
}

func taskWeaverFacts(span *sentlog.Span, facts map[string]any) {
	facts["ml.run.id"] = present{}
	rename(facts, span.Attributes, "session_id", "ml.session.id")
	rename(facts, span.Attributes, "session_id", "gen_ai.conversation.id")
	rename(facts, span.Attributes, "round_id", "ml.request.id")
	rename(facts, span.Attributes, "prompt_size", "gen_ai.usage.input_tokens")
	rename(facts, span.Attributes, "output_size", "gen_ai.usage.output_tokens")
	if _, ok := span.Attributes["prompt_size"]; ok {
		facts["ml.tokens.estimated"] = true
	}
	if role, ok := strings.CutSuffix(span.Name, ".reply"); ok {
		facts["ml.role"] = role
	}
}

// shared are the canonical keys that all spans of a trace have in common,
// where the trace is about one value of each.
var shared = []string{
	"ml.session.id", "gen_ai.conversation.id", "ml.training_run.id", "ml.sampling_session.id", "ml.run.id",
}

// inheritedFacts says which shared keys a span has to have because another span
// of its trace says so. Spans that say so only after this one has been sent
// cannot be waited for, so what counts is what was sent no later than it:
// the position in the log of what was sent is the order of arrival.
//
// A trace about two values of a key, such as two runs, is left out: there only
// ancestors count, and the components' own tests show that.
func inheritedFacts(trace []*sentlog.Span) map[*sentlog.Span]map[string]any {
	inherited := map[*sentlog.Span]map[string]any{}
	for _, span := range trace {
		inherited[span] = map[string]any{}
	}
	for _, key := range shared {
		values := map[any]bool{}
		for _, span := range trace {
			if value, ok := canonicalFacts(span)[key]; ok && value != (present{}) {
				values[value] = true
			}
		}
		if len(values) != 1 {
			continue
		}
		var known any
		for _, span := range trace {
			if value, ok := canonicalFacts(span)[key]; ok && value != (present{}) {
				known = value
			}
			if known != nil {
				inherited[span][key] = known
			}
		}
	}
	return inherited
}
