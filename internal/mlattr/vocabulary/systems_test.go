package vocabulary_test

import (
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// The clients that tests name.
var (
	systemFX            = system("fx")
	systemGenAI         = system("genai")
	systemLangfuse      = system("langfuse")
	systemMLflow        = system("mlflow")
	systemMegatron      = system("megatron")
	systemOpenInference = system("openinference")
	systemOpenLLMetry   = system("openllmetry")
	systemSGLang        = system("sglang")
	systemSnakepit      = system("snakepit")
	systemTGI           = system("tgi")
	systemTaskWeaver    = system("taskweaver")
	systemTorchTel      = system("torchtel")
	systemTorchTitan    = system("torchtitan")
	systemTransformers  = system("transformers")
	systemTuFT          = system("tuft")
	systemVLLM          = system("vllm")
	systemVercel        = system("vercel")
)

// system returns the vocabulary of a client's name.
func system(name string) vocabulary.System {
	system, ok := vocabulary.ParseSystem(name)
	if !ok {
		panic("there is no client " + name)
	}
	return system
}

// namesOf returns the names of the vocabularies of a set, separated by commas.
func namesOf(set vocabulary.System) string {
	var names []string
	for _, name := range vocabulary.SystemNames() {
		if set&system(name) != 0 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}
