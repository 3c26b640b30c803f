// Package clients has the table of each client, a YAML file each. A table says what the
// client sends and has no rule; package vocabulary reads by them.
package clients

import (
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
)

// order are the files of the clients, in the order in which their rules are tried. A
// client is added by a file with its table and its name here. The bit of a client is its
// index in this list, so that new ones go to the end.
var order = [...]string{
	"torchtel", "tuft", "snakepit", "fx", "taskweaver", "genai", "vllm", "openllmetry", "openinference",
	"vercel", "mlflow", "langfuse", "tgi", "sglang", "transformers", "torchtitan", "megatron",
	"logfire", "langsmith", "pydantic_ai", "openlit", "strands", "anthropic_sdk", "spring_ai", "dify",
	"adk", "tensorrt_llm", "tritonserver", "dynamo", "inference_gateway", "llama_cpp", "litellm",
	"nemo_lens", "axolotl", "ray_train", "nccl_inspector", "semantic_kernel", "bedrock", "genkit",
	"haystack", "printed_lines", "openlit_caches_apart",
}

// Count is the number of clients.
const Count = len(order)

// All returns the tables of the clients, in the order in which their rules are tried.
// Callers share them, and must not change what they refer to.
func All() []table.Table { return tables[:] }

// Launchers is the vocabulary of training launchers and schedulers, and Users that of the
// semantic conventions for users of a program. They are no client's and hold for everyone.
func Launchers() table.Table { return launchers }

// Users is documented with Launchers.
func Users() table.Table { return users }

// Reads are the functions that tables name in Alias.Reads. They accept text of any length
// and content.
var Reads = map[string]func(text string) string{
	"json_text":      mlattr.JSONText,
	"json_model":     mlattr.JSONModel,
	"component_kind": componentKind,
	"python_type":    pythonType,
}

// RunVariables are the environment variables that name a process's run, in the
// order of precedence: a tracking server's run, which is what a user looks up,
// before the launcher's, which names only one launch. A Sentinel names no run.
var RunVariables = [...]string{"MLFLOW_RUN_ID", "WANDB_RUN_ID", "TORCHELASTIC_RUN_ID"}
