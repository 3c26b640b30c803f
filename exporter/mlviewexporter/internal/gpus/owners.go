package gpus

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/input"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
)

// Owners are the names of owners by uid, user name, pod, hash or service.
type Owners map[string]string

// User returns the user of a workload: the number if it is one of the configured
// owners, else the name on the host, else the number.
func (o Owners) User(w *input.Workload) string {
	// What ml_guard writes instead of a name is none.
	if o[w.UserID] != "" || strings.HasPrefix(w.User, "[") {
		return w.UserID
	}
	return cmp.Or(w.User, w.UserID)
}

// Named returns how a workload is called, and whose it is.
func (o Owners) Named(w *input.Workload, service string) (name, owner string) {
	user := o.User(w)
	switch {
	case w.Job != "":
		name = "slurm job " + w.Job
	case w.Pod != "":
		name = "pod " + strings.TrimPrefix(w.Namespace+"/"+w.Pod, "/")
	case w.Container != "":
		name = "container " + w.Container[:min(12, len(w.Container))]
	case user != "":
		name = "user " + user
	}
	return name, o.Of(user, w.Pod, service)
}

// Of returns the name that is known for a user, else for one of the other ids,
// else the user.
func (o Owners) Of(user string, others ...string) string {
	for _, id := range append([]string{user}, others...) {
		if name := o[id]; id != "" && name != "" {
			return kept.Cut(name, kept.MaxLabel)
		}
	}
	if _, err := strconv.Atoi(user); err == nil {
		return "uid " + user
	}
	return user
}
