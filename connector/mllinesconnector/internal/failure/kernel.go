package failure

import (
	"fmt"
	"regexp"
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

// kill is the constraint, further fields, the name and the id of the task. The name may have
// any text, and only the task's own fields follow it.
var kill = regexp.MustCompile(KillBegin + `([^,]*)(.*?),task=(.*),pid=(\d{1,9})(?:,|$)`)

// ReadKill reads a line of the kernel's log. A line of a program can have the same text: the
// caller must know that it is the kernel's.
func ReadKill(line string) (k Kill, ok bool) {
	found := kill.FindStringSubmatch(line)
	if found == nil {
		return k, false
	}
	if _, path, ok := strings.Cut(found[2], ",task_memcg="); ok {
		k.Group = workload.ParseCgroup([]byte("0::" + path))
	}
	reason := "The host is out of memory"
	if found[1] == "CONSTRAINT_MEMCG" {
		reason = "The limit of its cgroup is reached"
	}
	k.PID, _ = strconv.ParseInt(found[4], 10, 64) // digits, by the expression
	k.Message = fmt.Sprintf("The kernel killed process %d (%.32s) for lack of memory. %s.", k.PID, strings.ToValidUTF8(found[3], "?"), reason)
	return k, k.PID > 0
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
