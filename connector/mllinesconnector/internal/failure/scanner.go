// Package failure finds in what a training process prints why it ended: tracebacks of
// Python, the root cause of torchrun, time limits of NCCL, and what Slurm says.
package failure

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
)

// Failure is why a process ended.
type Failure struct {
	// Class is the class of the exception, or what else ended it: the name of a signal, or
	// of a state of Slurm.
	Class string
	// Message is the text of the error, and Stack the traceback as Python prints it, "" if
	// there is none.
	Message, Stack string
	// Rank is the rank that failed, -1 if the text does not name it, and Host its host, "" if
	// the text does not. LocalRank is the rank on its host, which no text has.
	Rank, LocalRank int64
	Host            string
	// Time is when it failed, zero if the text does not say.
	Time time.Time
	// Evident is true if the text can be of nothing but a training.
	Evident bool
}

const (
	// maxStack and maxHead limit a traceback in bytes: of a longer one, the beginning and
	// the end are kept.
	maxStack, maxHead = 16 << 10, 4 << 10
	maxMessage        = 2 << 10
	// maxOther is how many lines of others may be between those of a traceback.
	maxOther = 8
	// maxFields is the number of lines of torchrun's root cause without its traceback, of
	// which it has maxTraceback at most.
	maxFields, maxTraceback = 12, 256
)

// Scanner finds failures in the lines of one process. The zero Scanner is ready to use. It
// is not safe for concurrent use.
type Scanner struct {
	state state
	other int
	// stack is the traceback, and head the size of its beginning once it is too long.
	stack        []byte
	head         int
	found        *Failure
	root         Failure
	fields, exit int
	// traced reports whether the lines of the root cause are those of its traceback.
	traced bool
}

type state uint8

const (
	idle state = iota
	// inTraceback is after the beginning of a traceback, until its exception.
	inTraceback
	// afterTraceback is after an exception, which another one may follow.
	afterTraceback
	// inRoot is within torchrun's root cause.
	inRoot
)

// begins are texts that all lines have which begin something. Other lines cost no more than
// the search for these.
var begins = [...]struct {
	text string
	read func(*Scanner, string)
}{
	{"Traceback (most recent call last)", (*Scanner).traceback},
	{"Root Cause (first observed failure)", (*Scanner).rootCause},
	{"Watchdog caught collective operation timeout", (*Scanner).watchdog},
	{"slurmstepd: error: ", (*Scanner).slurm},
	{"oom_kill event in ", (*Scanner).slurm},
	{"CUDA out of memory", (*Scanner).gpuOutOfMemory},
}

// Found returns the failure so far, nil if there is none. A later line may make it another.
func (s *Scanner) Found() *Failure { return s.found }

// Reset forgets everything.
func (s *Scanner) Reset() { *s = Scanner{} }

// Read reads the next line. It reports whether the line belongs to a failure.
func (s *Scanner) Read(line string) bool {
	if s.state == inTraceback && s.within(line) || s.state == afterTraceback && s.after(line) || s.state == inRoot && s.field(line) {
		return true
	}
	for i := range begins {
		if strings.Contains(line, begins[i].text) {
			before := s.found
			begins[i].read(s, line)
			return s.found != before || s.state != idle
		}
	}
	return false
}

func (s *Scanner) traceback(line string) {
	if s.state != afterTraceback {
		s.clear()
	}
	s.state, s.other = inTraceback, 0
	s.add(line[strings.Index(line, "Traceback"):])
}

// clear forgets a traceback.
func (s *Scanner) clear() { s.stack, s.head = nil, 0 }

// add adds a line to the traceback.
func (s *Scanner) add(line string) {
	line = line[:min(len(line), maxMessage)]
	if s.head == 0 && len(s.stack)+len(line) >= maxHead {
		s.head = len(s.stack)
	}
	s.stack = append(append(s.stack, line...), '\n')
	for s.head > 0 && len(s.stack)-s.head > maxStack-maxHead {
		s.stack = slices.Delete(s.stack, s.head, s.head+bytes.IndexByte(s.stack[s.head:], '\n')+1)
	}
}

// within reads a line of a traceback.
func (s *Scanner) within(line string) bool {
	if line == "" || line[0] == ' ' || line[0] == '\t' {
		s.add(line)
		return true
	}
	class, message, ok := exception(line)
	if !ok {
		s.skip()
		return false
	}
	s.add(line)
	s.state, s.other = afterTraceback, 0
	if strings.HasSuffix(class, "ChildFailedError") {
		return true // of the launcher, which says next what failed
	}
	rank := cmp.Or(s.found, &Failure{Rank: -1}).Rank
	s.found = &Failure{Class: class, Message: message, Stack: strings.TrimRight(string(s.stack), "\n"), Rank: rank}
	return true
}

// after reads a line after an exception: that another one follows, or the rest of its
// message.
func (s *Scanner) after(line string) bool {
	switch {
	case line == "":
		s.add(line)
		return true
	case strings.HasPrefix(line, "During handling of the above exception"), strings.HasPrefix(line, "The above exception was the direct cause"):
		s.add(line)
		s.other = 0
		return true
	case strings.HasPrefix(line, "Traceback (most recent call last)"):
		if s.other > 0 {
			s.clear()
		}
		return false
	}
	s.skip()
	return false
}

// skip counts a line that is of none of the texts: too many end the traceback.
func (s *Scanner) skip() {
	if s.other++; s.other > maxOther {
		s.state = idle
		s.clear()
	}
}

// ending is the line that ends a traceback: a class that stands alone, or one with a message.
var ending = regexp.MustCompile(`^(?:((?:[A-Za-z_][\w.]*\.)?[A-Z]\w*)|([A-Za-z_](?:[\w.]*\w)?):(?: (.*))?)$`)

// exception reads such a line.
func exception(line string) (class, message string, ok bool) {
	found := ending.FindStringSubmatch(line)
	if found == nil || len(found[1]+found[2]) > 200 {
		return "", "", false
	}
	message = strings.TrimSpace(found[3])
	return strings.Clone(found[1] + found[2]), strings.Clone(message[:min(len(message), maxMessage)]), true
}

// rootCause begins torchrun's root cause.
func (s *Scanner) rootCause(string) {
	s.state, s.fields, s.traced = inRoot, 0, false
	s.root, s.exit = Failure{Rank: -1, Evident: true}, 0
}

// field reads a line of torchrun's root cause.
func (s *Scanner) field(line string) bool {
	limit := maxFields
	if s.traced {
		limit = maxTraceback
	}
	s.fields++
	if strings.HasPrefix(line, "====") || s.fields > limit {
		s.state = idle
		s.concludeRoot()
		return true
	}
	if s.traced {
		// The line of the exception is indented as the fields are, the others further.
		if class, message, ok := exception(strings.TrimPrefix(line, "  ")); ok {
			s.root.Class, s.root.Message = class, message
		}
		return true
	}
	key, value, ok := strings.Cut(line, ":")
	if !ok {
		return true
	}
	value = strings.TrimSpace(value)
	number := func() int64 {
		first, _, _ := strings.Cut(value, " ")
		n, err := strconv.ParseInt(first, 10, 32)
		if err != nil {
			return -1
		}
		return n
	}
	switch strings.TrimSpace(key) {
	case "time":
		if at, err := time.ParseInLocation("2006-01-02_15:04:05", value, time.Local); err == nil {
			s.root.Time = at
		}
	case "host":
		s.root.Host = strings.Clone(value[:min(len(value), maxMessage)])
	case "rank":
		s.root.Rank = max(number(), -1)
	case "exitcode":
		s.exit = int(number())
	case "traceback", "msg":
		s.root.Message = strings.Clone(value[:min(len(value), maxMessage)])
		s.traced = strings.HasPrefix(value, "Traceback (most recent call last)")
	}
	return true
}

// signals are those that end processes.
var signals = map[int]string{-2: "SIGINT", -4: "SIGILL", -6: "SIGABRT", -7: "SIGBUS", -8: "SIGFPE", -9: "SIGKILL", -11: "SIGSEGV", -15: "SIGTERM"}

// concludeRoot ends torchrun's root cause. Each node's torchrun has one of its own ranks: the
// earliest is that of the job, where they print to one file.
func (s *Scanner) concludeRoot() {
	root := s.root
	if root.Rank < 0 || s.exit == 0 {
		return // an example in a text
	}
	if f := s.found; f != nil && f.Evident && f.Rank >= 0 && !f.Time.IsZero() && !root.Time.Before(f.Time) {
		return
	}
	if f := s.found; f != nil && (f.Stack != "" || f.Class == outOfMemory) {
		// The process's own traceback and the kernel say more.
		f.Rank, f.Host, f.Time, f.Evident = root.Rank, root.Host, root.Time, true
		return
	}
	root.Class = cmp.Or(root.Class, signals[s.exit], "ChildFailedError")
	s.found = &root
}

// watchdog reads that a collective operation of NCCL took too long.
func (s *Scanner) watchdog(line string) {
	f := Failure{Class: "torch.distributed.DistBackendError", Rank: -1, Evident: true}
	_, after, _ := strings.Cut(line, "[Rank ")
	number, _, _ := strings.Cut(after, "]")
	if n, err := strconv.ParseInt(number, 10, 32); err == nil && n >= 0 {
		f.Rank = n
	}
	message := line[strings.Index(line, "Watchdog caught"):]
	f.Message = strings.Clone(message[:min(len(message), maxMessage)])
	s.found = cmp.Or(s.found, &f)
}

// gpuOutOfMemory reads the exception of a GPU without memory where its traceback is missing.
func (s *Scanner) gpuOutOfMemory(line string) {
	if class, message, ok := exception(line); ok && s.found == nil && strings.HasSuffix(class, "Error") {
		s.found = &Failure{Class: class, Message: message, Rank: -1}
	}
}

// reasons are why Slurm ends jobs, with its names of their states.
var reasons = [...]struct{ text, state string }{
	{"DUE TO TIME LIMIT", "TIMEOUT"}, {"DUE TO PREEMPTION", "PREEMPTED"}, {"DUE TO NODE FAILURE", "NODE_FAIL"},
	{"DUE TO JOB REQUEUE", "REQUEUED"}, {"oom_kill event", "OUT_OF_MEMORY"}, {"oom-kill event", "OUT_OF_MEMORY"},
}

// slurm reads why Slurm ended a job. A job that its user cancelled has no reason.
func (s *Scanner) slurm(line string) {
	for _, r := range reasons {
		if strings.Contains(line, r.text) && (s.found == nil || s.found.Stack == "") {
			s.found = &Failure{Class: "slurm." + r.state, Message: strings.Clone(line[:min(len(line), maxMessage)]), Rank: -1}
			return
		}
	}
}

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
	f := Failure{Rank: -1}
	if s.found != nil && s.found.Stack == "" {
		f = *s.found
	}
	f.Class, f.Message, f.Evident = outOfMemory, message, true
	s.found = &f
}
