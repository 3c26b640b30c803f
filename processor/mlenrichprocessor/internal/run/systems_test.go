package run

import "github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"

// The clients that tests name.
var (
	systemFX         = system("fx")
	systemSnakepit   = system("snakepit")
	systemTaskWeaver = system("taskweaver")
	systemTorchTel   = system("torchtel")
	systemTuFT       = system("tuft")
	systemVLLM       = system("vllm")
)

// system returns the vocabulary of a client's name.
func system(name string) vocabulary.System {
	system, ok := vocabulary.ParseSystem(name)
	if !ok {
		panic("there is no client " + name)
	}
	return system
}
