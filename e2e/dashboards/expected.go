package dashboards

// OnlyOfFaults are the queries that are 0 or empty while all is well.
var OnlyOfFaults = []string{
	"runs: Free GPUs: A",
	"runs: GPUs failed: A",
	"training: NaN or infinite: A",
	"errors: Failures without artifact: A",
	"errors: No artifact was written: A",
	"errors: Redacted values: A",
	"collector: Refused: A",
	"collector: Lost before queue: A",
	"collector: Lost after queue: A",
	"collector: Fullest queue: A",
	"collector: Queues: A",
	"collector: Refused per second: A",
	"collector: Refused per second: B",
	"collector: Refused per second: C",
	"collector: Lost per second: A",
	"collector: Lost per second: B",
	"collector: Lost per second: C",
	"collector: Lost per second: D",
	"collector: Lost per second: E",
	"collector: Lost per second: F",
	"collector: Points that Prometheus would lose: A",
	"collector: Skipped rates and values: A",
	"collector: Skipped rates and values: B",
	"collector: Skipped rates and values: C",
	"collector: Skipped rates and values: D",
	"collector: Spans and updates skipped by ml_metrics: A",
	"collector: Spans and updates skipped by ml_metrics: B",
}

// NeverHere are the queries that no test of a minute can give a value other than
// 0, and why. The main job has the zeros, all but those of removed artifacts.
var NeverHere = map[string]string{
	"runs: Stalled: A":                                        "a run is stalled after 5 minutes of silence; tests/runs.yaml of Prometheus has run:state with made-up series",
	"runs: GPUs held idle: A":                                 "no recording holds a GPU for 5 minutes and leaves it idle; tests/alerts.yaml of Prometheus has the like of it",
	"runs: Dollars an hour of GPUs without work: A":           "no recording holds a GPU for 5 minutes and leaves it idle; tests/costs.yaml of Prometheus has made-up series",
	RemovedArtifacts:                                          "retention removes once in the time of a test, and a rate takes two changes",
	"inference: Requests that fail: A":                        "no scenario's request to a model fails with a type of error",
	"inference: Fine-tuning service: queue and sessions: A":   "the scenario's futures are done when their gauge is read",
	"gpus: GPUs: J":                                           "no recording has a recovery action, which the drivers of its GPUs do not tell",
	"gpus: Errors of memory and links: A":                     hardwareErrors,
	"gpus: Errors of memory and links: B":                     hardwareErrors,
	"gpus: Errors of memory and links: C":                     hardwareErrors,
	"gpus: Errors of memory and links: D":                     hardwareErrors,
	"collector: Read from GPUs: B":                            "a GPU that is lost is a state of the reading, and no failed point",
	"collector: Evictions of ml_enrich's store per second: A": "the store takes 10,000 entries and more",
}

const hardwareErrors = "the counters of the recordings do not rise"

// RemovedArtifacts is the query of a counter that begins with the first of them.
const RemovedArtifacts = "errors: From failures to artifacts: D"
