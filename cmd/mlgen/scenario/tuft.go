package scenario

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/sentlog"
)

const (
	tuftModel      = "Qwen/Qwen3-8B"
	tuftGPUMemory  = 85_520_809_984
	tuftHostMemory = 2_151_677_489_152
	tuftHTTPScope  = "opentelemetry.instrumentation.fastapi"
	tuftAddress    = "127.0.0.1:10610"
	tuftPort       = 10610
)

// tuft imitates TuFT 0.2.2: a fine-tuning server, which sends traces, metrics and
// logs. The model of the first run is in the server's process. That of the second
// is in a Ray actor, where nothing sets up telemetry: its spans never arrive.
type tuft struct {
	server *tuftServer
	runs   []*tuftRun
	steps  int
}

// tuftRun is one client's training run.
type tuftRun struct {
	session         string
	id              string
	samplingSession string
	requests        int
	// local says that the model is in the server's process and not in an actor.
	local bool
}

// tuftCycle is what a client does over and over, once its model exists.
var tuftCycle = []string{
	"forward_backward", "optim_step", "forward_backward", "optim_step",
	"save_weights_for_sampler", "create_sampling_session", "sample", "sample",
	"forward_backward", "optim_step", "forward", "save_weights", "load_weights", "chat_completion",
}

// tuftCycles is how often a client repeats the cycle before it unloads its
// model and starts a new run.
const tuftCycles = 3

func newTuFT(settings Settings) Scenario {
	t := &tuft{server: newTuFTServer(settings)}
	for i := range 2 {
		t.runs = append(t.runs, &tuftRun{local: i == 0})
	}
	return t
}

// Step performs one request of one client, the clients taking turns.
func (t *tuft) Step(at time.Time) []Batch {
	s := t.server
	if s.start.IsZero() {
		s.boot(at.Add(-20 * time.Second))
	}
	run := t.runs[t.steps%len(t.runs)]
	t.steps++
	s.perform(run, t.nextOperation(run), at)
	s.measureHost()
	return s.flush(at, false)
}

// Finish sends what the server holds.
func (t *tuft) Finish(at time.Time) []Batch {
	return t.server.flush(at, true)
}

// nextOperation walks through a run's life: session, model, then the cycle.
func (t *tuft) nextOperation(run *tuftRun) string {
	n := run.requests
	run.requests++
	switch n {
	case 0:
		run.session, run.id, run.samplingSession = t.server.rand.uuid(), t.server.rand.uuid(), ""
		sentlog.Count(&t.server.truth.Runs, run.id, 1)
		return "create_session"
	case 1:
		return "create_model"
	case 2 + tuftCycles*len(tuftCycle):
		run.requests = 0
		return "unload_model"
	}
	return tuftCycle[(n-2)%len(tuftCycle)]
}

// tuftServer is the server process with its instruments.
type tuftServer struct {
	*process
	// passes counts forward and backward passes, of which some fail.
	passes int

	modelsActive, checkpointsSaved, sessionsActive, samplingRequests *instrument
	queueLength, created, completed                                  *instrument
	trainTokens, checkpointSize                                      *instrument
	sampleDuration, sampleTokens, outputTokens                       *instrument
	waitTime, executionTime, redisDuration                           *instrument
	cpu, memoryUsed, memoryTotal, memoryShare, processMemory         *instrument
	gpuUtilization, gpuUsed, gpuTotal                                *instrument
	httpActive, httpDuration, httpResponse, httpRequest              *instrument
}

func newTuFTServer(settings Settings) *tuftServer {
	// The host is what an operator sets in TuFT's resource_attributes.
	resource := append(pythonSDK(settings.Seed, "tuft/server", "tuft"), attr{"host.name", Host})
	s := &tuftServer{process: newProcess("tuft", "server", settings, resource)}
	m := &meter{scope: "tuft"}
	s.modelsActive = m.add(upDownCounter, "tuft.training.models.active", "", "Number of active training models")
	s.trainTokens = m.add(histogram, "tuft.training.tokens_per_second", "tokens/s", "Training tokens per second")
	s.checkpointsSaved = m.add(counter, "tuft.training.checkpoints.saved", "", "Number of checkpoints saved")
	s.checkpointSize = m.add(histogram, "tuft.training.checkpoint.size_bytes", "bytes", "Checkpoint size in bytes")
	s.sessionsActive = m.add(upDownCounter, "tuft.sampling.sessions.active", "", "Number of active sampling sessions")
	s.samplingRequests = m.add(counter, "tuft.sampling.requests", "", "Number of sampling requests")
	s.sampleDuration = m.add(histogram, "tuft.sampling.duration", "s", "Sampling request duration")
	s.sampleTokens = m.add(histogram, "tuft.sampling.tokens_per_second", "tokens/s", "Sampling tokens per second")
	s.outputTokens = m.add(histogram, "tuft.sampling.output_tokens", "tokens", "Number of output tokens per sample")
	s.queueLength = m.add(upDownCounter, "tuft.futures.queue_length", "", "Number of futures in queue")
	s.created = m.add(counter, "tuft.futures.created", "", "Number of futures created")
	s.completed = m.add(counter, "tuft.futures.completed", "", "Number of futures completed")
	s.waitTime = m.add(histogram, "tuft.futures.wait_time", "s", "Time waiting for future completion")
	s.executionTime = m.add(histogram, "tuft.futures.execution_time", "s", "Future execution time")
	s.redisDuration = m.add(histogram, "tuft.redis.operation.duration", "s", "Redis operation duration")

	h := &meter{scope: tuftHTTPScope}
	s.httpActive = h.add(upDownCounter, "http.server.active_requests", "{request}", "Number of active HTTP server requests.")
	s.httpDuration = h.add(histogram, "http.server.duration", "ms", "Measures the duration of inbound HTTP requests.")
	s.httpResponse = h.add(histogram, "http.server.response.size", "By", "measures the size of HTTP response messages (compressed).")
	s.httpRequest = h.add(histogram, "http.server.request.size", "By", "Measures the size of HTTP request messages (compressed).")

	r := &meter{scope: "tuft.resources"}
	s.cpu = r.add(gauge, "tuft.resource.cpu.utilization_percent", "%", "CPU utilization percentage").doubles()
	s.memoryUsed = r.add(gauge, "tuft.resource.memory.used_bytes", "bytes", "Memory used in bytes")
	s.memoryTotal = r.add(gauge, "tuft.resource.memory.total_bytes", "bytes", "Total memory in bytes")
	s.memoryShare = r.add(gauge, "tuft.resource.memory.utilization_percent", "%", "Memory utilization percentage").doubles()
	s.gpuUtilization = r.add(gauge, "tuft.resource.gpu.utilization_percent", "%", "GPU utilization percentage")
	s.gpuUsed = r.add(gauge, "tuft.resource.gpu.memory_used_bytes", "bytes", "GPU memory used in bytes")
	s.gpuTotal = r.add(gauge, "tuft.resource.gpu.memory_total_bytes", "bytes", "GPU total memory in bytes")
	s.processMemory = r.add(gauge, "tuft.resource.process.memory_used_bytes", "bytes", "Process memory usage in bytes")
	s.meters = []*meter{m, h, r}
	return s
}

// boot starts the server. Its first log has no trace.
func (s *tuftServer) boot(at time.Time) {
	s.begin(at)
	s.redis("SCAN", ref{trace: s.rand.traceID()}, at.Add(-3*time.Millisecond), at.Add(-2*time.Millisecond))
	s.redis("GET", ref{trace: s.rand.traceID()}, at.Add(-2*time.Millisecond), at.Add(-time.Millisecond))
	s.info("server", "lifespan", at, "Server initialized successfully", ref{})
}

// measureHost observes the host and its two GPUs, as the client's callbacks do.
func (s *tuftServer) measureHost() {
	used := s.rand.near(0.18, 0.05)
	s.cpu.record(round(s.rand.between(12, 35), 1))
	s.memoryUsed.record(float64(int64(used * tuftHostMemory)))
	s.memoryTotal.record(tuftHostMemory)
	s.memoryShare.record(round(100*used, 1))
	s.processMemory.record(s.rand.near(6.2e9, 0.02))
	for i, id := range []string{"0", "1"} {
		s.gpuUtilization.record(float64(s.rand.count(60+10*i, 85+10*i)), attr{"gpu_id", id})
		s.gpuUsed.record(float64(int64(s.rand.near(0.6+0.1*float64(i), 0.02)*tuftGPUMemory)), attr{"gpu_id", id})
		s.gpuTotal.record(tuftGPUMemory, attr{"gpu_id", id})
	}
}
