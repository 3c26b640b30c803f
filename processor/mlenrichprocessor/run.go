package mlenrichprocessor

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// runIDLength is the length of an inferred run id in hexadecimal digits.
const runIDLength = 16

// inferable are the clients whose process is one run, so that a run can be
// inferred where nobody names it. A fine-tuning service holds many runs at
// once; what it does outside a training run belongs to none.
const inferable = mlattr.TorchTel | mlattr.FX | mlattr.Snakepit | mlattr.TaskWeaver

// snakepitBridge is the service that Snakepit's Python workers report as. It
// serves the runs of its callers and is none itself.
const snakepitBridge = "snakepit.python.bridge"

// process is what a resource says about the process behind it, for inferring
// a run. Every part may be empty.
type process struct {
	namespace string
	service   string
	host      string
	jobName   string
	instance  string
	pid       string
	started   string
	worldSize int64
}

// key identifies the process among others as well as the resource allows.
// The ranks of one distributed job on a host share it: instance, pid and
// start time count only where there is one rank.
func (p process) key() string {
	parts := []string{p.namespace, p.service, p.host, p.jobName}
	if p.worldSize <= 1 {
		parts = append(parts, p.instance, p.pid, p.started)
	}
	return digest(parts...)
}

// maxProcessKeys is how many keys processKeys keeps. In practice a request has
// the spans of a few dozen processes, and the next one of the same.
const maxProcessKeys = 256

// processKeys keeps the keys of processes, so that one that recurs is made once.
// The zero value is ready for use.
type processKeys map[process]string

func (m *processKeys) of(p *process) string {
	if key, ok := (*m)[*p]; ok {
		return key
	}
	if *m == nil {
		*m = make(processKeys)
	} else if len(*m) >= maxProcessKeys {
		clear(*m)
	}
	key := p.key()
	(*m)[p.clone()] = key
	return key
}

// clone is a copy that refers to nothing that was received.
func (p process) clone() process {
	for _, text := range []*string{&p.namespace, &p.service, &p.host, &p.jobName, &p.instance, &p.pid, &p.started} {
		*text = strings.Clone(*text)
	}
	return p
}

// nameOnly says that the resource names a service and nothing else, which
// for an agent's service means: not even which process it was.
func (p process) nameOnly() bool {
	return p.host == "" && p.jobName == "" && p.instance == "" && p.pid == "" && p.worldSize == 0
}

// run is the run that a resource belongs to.
type run struct {
	// id is empty where the resource determines no run.
	id string
	// inferred is true where id was computed and sent by nobody.
	inferred bool
	// perTrace is true where each trace is a run of its own: the run goes
	// on spans then, and traceRunID computes it.
	perTrace bool
}

// runOf finds a resource's run by the order of precedence of the vocabulary:
// the ids that someone gave, and then, for a client whose process is a run, a
// hash of what tells the process from others, which is its key.
func runOf(facts *mlattr.Facts, p process, key string, systems mlattr.System) run {
	inferred := facts.Find(mlattr.RunInferred)
	for _, key := range [...]string{mlattr.TrainingRunID, mlattr.RunID, mlattr.JobID, mlattr.KubernetesJob} {
		if id := facts.Text(key); id != "" && !mlattr.Sentinel(id) {
			return run{id: id, inferred: inferred != nil && inferred.Bool}
		}
	}
	switch {
	case facts.Find(mlattr.RunID) != nil || inferred != nil && !inferred.Bool:
		// There is a run that cannot be used, or the resource says that a
		// run of its would not be inferred. Neither may be contradicted.
		return run{}
	case systems&inferable == 0 || p.service == snakepitBridge:
		return run{}
	case p.service == "" && p.nameOnly():
		return run{}
	case systems&inferable == mlattr.TaskWeaver && p.nameOnly():
		return run{perTrace: true}
	default:
		return run{id: key, inferred: true}
	}
}

// traceRunID is the run of a trace of a service that names nothing else.
func traceRunID(p process, trace [16]byte) string {
	return digest(p.namespace, p.service, string(trace[:]))
}

// digest hashes its parts so that no two lists of parts are alike by the way
// they are joined.
func digest(parts ...string) string {
	var raw [256]byte
	text := raw[:0]
	for _, part := range parts {
		text = strconv.AppendInt(text, int64(len(part)), 10)
		text = append(text, ':')
		text = append(text, part...)
	}
	sum := sha256.Sum256(text)
	var digits [runIDLength]byte
	hex.Encode(digits[:], sum[:runIDLength/2])
	return string(digits[:])
}
