package evidence

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/hoststate"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

const (
	// maxDumps bounds all Flight Recorder dumps, in bytes, and as much those that come later.
	maxDumps = 64 << 20
	// maxDumpFiles is how many dumps are taken, and dumpsSince how long before the onset the
	// oldest of them was written: a job's dumps of an earlier hang stay.
	maxDumpFiles = 64
	dumpsSince   = time.Hour
	// settled is how long ago a dump that comes later was written: it may still be written.
	settled = 2 * time.Second
	// lookServes is how long a look at the host serves other hangs.
	lookServes = 10 * time.Second
	// maxName is how long their names may be, in bytes.
	maxName = 200
)

// ReportName is the file that a person reads first.
const ReportName = "report.md"

// Gatherer gathers the evidence of hangs on one host. It is not safe for concurrent use.
type Gatherer struct {
	// Root is where the host's root directory is mounted, "" for /.
	Root string
	// Dumps are patterns of the files that hold Flight Recorder dumps.
	Dumps     []string
	processes *workload.Processes
	mounts    *hoststate.Mounts
	seen      look
}

// Bundle is the evidence of a hang, to which is added what comes later.
type Bundle struct {
	*Hang
	// verdict says which ranks wait for which, "" until it is known.
	verdict string
	// body is the report below its first sentence, and later are lines about what was added.
	body  string
	later []string
	dumps dumps
}

// dumps are the Flight Recorder dumps of a hang that were looked at.
type dumps struct {
	prefix string
	// since is when the oldest was written, and age how long ago the newest.
	since time.Time
	age   time.Duration
	// written has when each that was looked at was written, by its path.
	written map[string]time.Time
	// files is how many were looked at, copied of them and bytes what these have.
	files, copied int
	bytes         int64
}

// New returns a Gatherer.
func New(root string, dumps []string) *Gatherer {
	return &Gatherer{Root: root, Dumps: dumps, processes: workload.NewNamespaceProcesses(root), mounts: hoststate.NewMounts(root)}
}

// Gather returns the evidence of a hang and its files. gpus, log and left are lines about the run's
// GPUs, the newest log records, and what the collector has left out. What cannot be had is said in
// the report. When ctx ends, it returns what it has. A look at the host that was begun after the
// hang was concluded serves it. Of a hang elsewhere it returns none if nothing of the run is here.
func (g *Gatherer) Gather(ctx context.Context, h *Hang, verdict string, gpus, log, left []string) (*Bundle, []store.File) {
	if !g.seen.at.After(h.Detected) || time.Since(g.seen.at) > lookServes {
		g.seen = g.lookAround(ctx)
	}
	processes := g.seen.of(h)
	if h.Elsewhere && len(gpus) == 0 && (len(processes) == 0 || !processes[0].ids) {
		return nil, nil
	}
	for i := range processes {
		processes[i].waits = g.waitsOf(processes[i].pid)
	}
	if g.seen.state == nil {
		g.seen.state = append(g.host(ctx), g.seen.blocked...)
	}
	b := &Bundle{Hang: h, verdict: verdict, dumps: dumps{prefix: "dump-", since: h.Onset.Add(-dumpsSince), written: make(map[string]time.Time)}}
	gathered := time.Now()
	files, notes := g.copy(&b.dumps)
	if g.seen.unread > 0 {
		notes = slices.Insert(notes, 0, fmt.Sprintf("%d processes of the host could not be looked into: that needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.", g.seen.unread))
	}
	if len(log) > 0 {
		for i := range log {
			log[i] = redact.Text(log[i])
		}
		files = append(files, store.File{Name: "log.txt", Content: []byte(strings.Join(log, "\n") + "\n")})
	}
	b.body = g.body(h, processes, gpus, g.seen.state, left, files, notes)
	b.dumps = dumps{prefix: "later-", since: gathered.Add(-settled), age: settled, written: b.dumps.written}
	return b, append(files, b.report())
}

// Later returns the files that what came since adds to the evidence of a hang or changes, none if
// nothing came: dumps, and which ranks wait for which.
func (g *Gatherer) Later(b *Bundle, verdict string) []store.File {
	files, notes := g.copy(&b.dumps)
	if len(files)+len(notes) == 0 && (verdict == "" || verdict == b.verdict) {
		return nil
	}
	b.verdict, b.later = cmp.Or(verdict, b.verdict), slices.Concat(b.later, listed(files), notes)
	return append(files, b.report())
}

// report begins with which ranks wait for which, if that is known, and with what is wrong.
func (b *Bundle) report() store.File {
	var text strings.Builder
	text.WriteString("# ")
	if b.verdict != "" {
		text.WriteString(b.verdict + "\n\n")
	}
	text.WriteString(b.Text + "\n" + b.body)
	section(&text, "Added later", b.later)
	return store.File{Name: ReportName, Content: []byte(redact.Text(text.String()))}
}

// copy returns the Flight Recorder dumps that were not looked at before. Anybody may write there: a
// name could be too long for the file beside the report, or forge its lines.
func (g *Gatherer) copy(d *dumps) (files []store.File, notes []string) {
	for _, pattern := range g.Dumps {
		found, _ := filepath.Glob(filepath.Join("/", g.Root, pattern)) // Validate has checked it
		for _, path := range found {
			info, err := os.Lstat(path)
			if err != nil || !info.Mode().IsRegular() || info.ModTime().Before(d.since) || time.Since(info.ModTime()).Abs() < d.age ||
				info.ModTime().Equal(d.written[path]) || len(info.Name()) > maxName || strings.ContainsFunc(path, unicode.IsControl) {
				continue
			}
			if d.files++; d.files > maxDumpFiles {
				if d.files == maxDumpFiles+1 {
					notes = append(notes, "Flight Recorder dumps are left out, because they are more than 64: "+path)
				}
				return files, notes
			}
			d.written[path] = info.ModTime()
			if info.Size() > maxDumps-d.bytes {
				notes = append(notes, "A Flight Recorder dump is left out, because all are more than 64 MiB: "+path)
				continue
			}
			content, err := saved.ReadIn(filepath.Dir(path), filepath.Base(path), maxDumps-d.bytes) // anybody may write to the folder
			if err != nil {
				notes = append(notes, fmt.Sprintf("A Flight Recorder dump could not be read: %v", err))
				continue
			}
			files = append(files, store.File{Name: d.prefix + strconv.Itoa(d.copied) + "-" + filepath.Base(path), Content: content})
			d.copied, d.bytes = d.copied+1, d.bytes+int64(len(content))
		}
	}
	return files, notes
}

// section writes a part of a report, none without lines.
func section(b *strings.Builder, title string, lines []string) {
	if len(lines) > 0 {
		fmt.Fprintf(b, "\n## %s\n\n", title)
	}
	for _, line := range lines {
		fmt.Fprintf(b, "- %s\n", line)
	}
}

// listed returns a line for each file.
func listed(files []store.File) []string {
	return mlattr.Mapped(files, func(f store.File) string { return fmt.Sprintf("%s, %d bytes", f.Name, len(f.Content)) })
}

// body returns a report below the sentence that says what is wrong.
func (g *Gatherer) body(h *Hang, processes []process, gpus, host, left []string, files []store.File, notes []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nSince %s, concluded at %s. Host %s.\n", h.Onset.UTC().Format(time.RFC3339), h.Detected.UTC().Format(time.RFC3339), workload.HostName(g.Root))
	if h.Next != "" {
		fmt.Fprintf(&b, "\nNext: %s\n", h.Next)
	}
	section(&b, "Evidence", h.Evidence)
	var lines []string
	for i := range processes {
		lines = append(lines, processes[i].line())
	}
	if len(lines) == 0 {
		lines = []string{"None was found by the ids of the run, its job or its container, nor by a launcher's RANK."}
	} else if !processes[0].ids {
		lines = slices.Insert(lines, 0, "None has an id of the run: these are all of the host with a launcher's RANK.")
	}
	section(&b, "Processes of the run on this host", lines)
	section(&b, "GPUs of the run", gpus)
	section(&b, "Links, network file systems and blocked processes of this host", host)
	section(&b, "What this collector has left out since it started", left)
	section(&b, "Files beside this one", listed(files))
	section(&b, "What is missing", notes)
	return b.String()
}
