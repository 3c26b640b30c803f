package workload

import (
	"bytes"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/clients"
)

// maxValueLength is the longest value in bytes. Longer values are ignored: ids
// and names are shorter.
const maxValueLength = 256

// maxResourceAttributesLength is the same for OTEL_RESOURCE_ATTRIBUTES, which
// is a list.
const maxResourceAttributesLength = 4096

// Environment is the part of a process's environment that identifies its
// workload. Other variables often hold secrets and are never kept. None is
// logged.
type Environment struct {
	// RunIDs are the values of mlattr.RunVariables, in their order.
	RunIDs                   [len(clients.RunVariables)]string
	Rank                     string
	LocalRank                string
	WorldSize                string
	TorchElasticRestartCount string
	SlurmJobID               string
	SlurmProcID              string
	SlurmRestartCount        string
	SlurmJobUser             string
	ServiceName              string
	ResourceAttributes       string
}

// field returns the field of an allowed variable, and nil for every other
// variable. It is the list of allowed names.
func (e *Environment) field(name []byte) *string {
	switch string(name) {
	case "RANK":
		return &e.Rank
	case "LOCAL_RANK":
		return &e.LocalRank
	case "WORLD_SIZE":
		return &e.WorldSize
	case "TORCHELASTIC_RESTART_COUNT":
		return &e.TorchElasticRestartCount
	case "SLURM_JOB_ID":
		return &e.SlurmJobID
	case "SLURM_PROCID":
		return &e.SlurmProcID
	case "SLURM_RESTART_COUNT":
		return &e.SlurmRestartCount
	case "SLURM_JOB_USER":
		return &e.SlurmJobUser
	case "OTEL_SERVICE_NAME":
		return &e.ServiceName
	case "OTEL_RESOURCE_ATTRIBUTES":
		return &e.ResourceAttributes
	}
	for i, known := range clients.RunVariables {
		if string(name) == known {
			return &e.RunIDs[i]
		}
	}
	return nil
}

// ParseEnviron reads an environment as /proc/<pid>/environ gives it: entries
// NAME=value, each ended by a zero byte. As in getenv, the first entry of a
// name counts. A value that is too long or no UTF-8 is ignored.
func ParseEnviron(raw []byte) Environment {
	var env Environment
	for len(raw) > 0 {
		var entry []byte
		entry, raw, _ = bytes.Cut(raw, []byte{0})
		name, value, found := bytes.Cut(entry, []byte{'='})
		if !found {
			continue
		}
		field := env.field(name)
		if field == nil || *field != "" {
			continue
		}
		limit := maxValueLength
		if field == &env.ResourceAttributes {
			limit = maxResourceAttributesLength
		}
		if len(value) > limit || !utf8.Valid(value) {
			continue
		}
		*field = string(value)
	}
	return env
}

// serviceName reads service.name from the value of OTEL_RESOURCE_ATTRIBUTES,
// a list key=value,… with percent-encoded values. As in the SDKs, the last
// entry of a key counts. Other keys are ignored.
func serviceName(resourceAttributes string) string {
	name := ""
	for pair := range strings.SplitSeq(resourceAttributes, ",") {
		key, value, found := strings.Cut(pair, "=")
		if !found || strings.TrimSpace(key) != "service.name" {
			continue
		}
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || len(decoded) > maxValueLength || !utf8.ValidString(decoded) {
			continue
		}
		name = decoded
	}
	return name
}
