package fleet

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
)

// Size is the size of a fleet.
type Size struct {
	// Runs is the number of training runs, each of Ranks processes. They use the
	// GPUs in order; the last ones have none if there are too few.
	Runs, Ranks, GPUs int
}

// The limits of a fleet.
const (
	maxRuns  = 10_000
	maxRanks = 1024
	maxGPUs  = 16_384
)

// ParseSize reads a size such as runs=500,ranks=8,gpus=512. What is missing is
// 10 runs, 8 ranks and a GPU for each.
func ParseSize(text string) (Size, error) {
	size := Size{Runs: 10, Ranks: 8, GPUs: -1}
	for part := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(strings.TrimSpace(part), "=")
		n, err := strconv.Atoi(value)
		most := 0
		switch key {
		case "runs":
			size.Runs, most = n, maxRuns
		case "ranks":
			size.Ranks, most = n, maxRanks
		case "gpus":
			size.GPUs, most = n, maxGPUs
		}
		if err != nil || n < 0 || n > most || key == "ranks" && n == 0 {
			return Size{}, fmt.Errorf("%q, want runs=0 to %d, ranks=1 to %d and gpus=0 to %d, as in runs=500,ranks=8,gpus=512", text, maxRuns, maxRanks, maxGPUs)
		}
	}
	if size.GPUs < 0 {
		size.GPUs = min(size.Runs*size.Ranks, maxGPUs)
	}
	return size, nil
}

const (
	gpusOfHost = 8
	// runsOfService is the number of training runs for each agent service.
	runsOfService = 25
)

var (
	// trainings are teams and their services.
	trainings = [][2]string{
		{"chat", "llama-sft"}, {"chat", "qwen-dpo"}, {"search", "bert-ft"}, {"base", "mixtral-pretrain"},
		{"speech", "whisper-ft"}, {"vision", "vit-l-pretrain"}, {"chat", "reward-model"}, {"search", "embedder"},
	}
	services = []string{"support-agent", "search-rag", "code-review", "triage", "summaries"}
	models   = []string{"llama-3.3-70b", "qwen3-32b", "gpt-oss-120b"}
)

// New returns a healthy site of the given size: training runs with steps of 10
// to 30 times the site's, so that many runs make a modest load, and a service
// for every 25 of them.
func New(settings scenario.Settings, size Size) *Site {
	site := NewSite("fleet", settings)
	random := newSource(settings.Seed, "fleet")
	var free []Place
	for i := 0; i < size.GPUs; i += gpusOfHost {
		free = append(free, Places(site.AddHost(fmt.Sprintf("gpu-%03d", 1+i/gpusOfHost), min(gpusOfHost, size.GPUs-i)))...)
	}
	for i := range size.Runs {
		places := free[:min(size.Ranks, len(free))]
		free = free[len(places):]
		for rank := len(places); rank < size.Ranks; rank++ {
			places = append(places[:rank:rank], Place{Host: fmt.Sprintf("train-%04d-%d", i, rank/gpusOfHost)})
		}
		of := trainings[i%len(trainings)]
		site.Train(Training{
			Team: of[0], Service: of[1], Job: 50_000 + i, User: 1001 + random.IntN(40), Places: places,
			StepTime: time.Duration(random.between(10, 30) * float64(site.StepTime())), Begun: random.between(0.01, 1),
		})
	}
	for i := range (size.Runs + runsOfService - 1) / runsOfService {
		name := services[i%len(services)]
		if i >= len(services) {
			name += "-" + strconv.Itoa(i/len(services)+1)
		}
		site.Serve(Service{
			Name: name, Version: fmt.Sprintf("1.%d.0", i), Host: fmt.Sprintf("svc-%02d", i), Model: models[i%len(models)],
			Tool: "search", Requests: 1 + random.IntN(3),
		}).Fail(0.004, "ConnectionError", "connection reset by peer")
	}
	return site
}
