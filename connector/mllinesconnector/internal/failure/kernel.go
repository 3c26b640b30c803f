package failure

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
)

// outOfMemory is the class of a process that the kernel killed for lack of memory, in
// Kubernetes' words.
const outOfMemory = "OOMKilled"

// Kill is that the kernel killed a process for lack of memory.
type Kill struct {
	// Group is where the process was, and PID its id on the host.
	Group workload.Cgroup
	PID   int64
	// Message says it in words.
	Message string
}

// KillBegin is a text that all lines of the kernel, from 4.19 on, have about a kill.
const KillBegin = "oom-kill:constraint="

// ReadKill reads a line of the kernel's log. A line of a program can have the same text: the
// caller must know that it is the kernel's.
func ReadKill(line string) (k Kill, ok bool) {
	_, text, found := strings.Cut(line, KillBegin)
	if !found {
		return k, false
	}
	// The name of the task may have any text, and only its own fields follow it.
	head, task, found := strings.Cut(text, ",task=")
	name, after, ends := cutLast(task, ",pid=")
	if !found || !ends {
		return k, false
	}
	id, _, _ := strings.Cut(after, ",")
	pid, err := strconv.ParseInt(id, 10, 32)
	if err != nil || pid <= 0 {
		return k, false
	}
	constraint, _, _ := strings.Cut(head, ",")
	if _, path, ok := strings.Cut(head, ",task_memcg="); ok {
		k.Group = workload.ParseCgroup([]byte("0::" + path))
	}
	reason := "The host is out of memory"
	if constraint == "CONSTRAINT_MEMCG" {
		reason = "The limit of its cgroup is reached"
	}
	k.PID = pid
	k.Message = fmt.Sprintf("The kernel killed process %d (%.32s) for lack of memory. %s.", pid, strings.ToValidUTF8(name, "?"), reason)
	return k, true
}

// cutLast is strings.Cut at the last separator.
func cutLast(text, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(text, separator); at >= 0 {
		return text[:at], text[at+len(separator):], true
	}
	return text, "", false
}

// Killed adds that the kernel killed the process, which says more than that it ended by a
// signal.
func (s *Scanner) Killed(message string) {
	f := Failure{Class: outOfMemory, Rank: -1}
	if s.found != nil && s.found.Stack == "" {
		f = *s.found
		f.Class = outOfMemory
	}
	f.Message, f.Evident = message, true
	s.found = &f
}
