package evidence

import (
	"cmp"
	"context"
	"fmt"
	"html"
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

	// looked is when the host was looked at. Then were seen the processes that an id of a run, its
	// job or its container or a launcher's rank describes, lines about links, file systems and
	// processes in an uninterruptible wait, and how many processes do not say what they are,
	// because that needs privileges.
	looked    time.Time
	described []process
	state     []string
	unread    int
}

// Bundle is the evidence of a hang, to which is added what comes later.
type Bundle struct {
	*Hang
	// Group and Name are those of its folder, At is when that was written.
	Group, Name string
	At          time.Time

	// verdict says which ranks wait for which, "" until it is known. body is the report below its
	// first sentences, and later are lines about what was added.
	verdict, body string
	later         []string

	// prefix begins the names of the dumps that are copied: those written since a moment. written
	// has when each that was looked at was written, by its path. files is how many these are, bytes
	// what the copied ones have.
	prefix  string
	since   time.Time
	written map[string]time.Time
	files   int
	bytes   int64
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
	if !g.looked.After(h.Detected) || time.Since(g.looked) > lookServes {
		g.look(ctx)
	}
	processes := g.processesOf(h)
	if h.Elsewhere && len(gpus) == 0 && (len(processes) == 0 || !processes[0].ids) {
		return nil, nil
	}
	for i := range processes {
		processes[i].waits = g.waitsOf(processes[i].pid)
	}
	b := &Bundle{Hang: h, verdict: verdict, prefix: "dump-", since: h.Onset.Add(-dumpsSince), written: make(map[string]time.Time)}
	later := Bundle{Hang: h, verdict: verdict, prefix: "later-", since: time.Now().Add(-settled), written: b.written}
	files, notes := b.copy(g.Listed())
	if g.unread > 0 {
		notes = append(notes, fmt.Sprintf("%d processes of the host could not be looked into: that needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.", g.unread))
	}
	if len(log) > 0 {
		files = append(files, store.File{Name: "log.txt", Content: []byte(strings.Join(mlattr.Mapped(log, redact.Text), "\n") + "\n")})
	}
	later.body = g.body(h, processes, gpus, left, files, notes)
	return &later, append(files, later.reports()...)
}

// Later returns the files that what came since adds to the evidence of a hang or changes, none if
// nothing came: dumps of those listed, and which ranks wait for which.
func (b *Bundle) Later(listed []string, verdict string) []store.File {
	files, notes := b.copy(listed)
	if len(files)+len(notes) == 0 && (verdict == "" || verdict == b.verdict) {
		return nil
	}
	b.verdict, b.later = cmp.Or(verdict, b.verdict), slices.Concat(b.later, sizes(files), notes)
	return append(files, b.reports()...)
}

// reports returns the report, as it is and for a browser. It begins with which ranks wait for
// which, if that is known, and with what is wrong.
func (b *Bundle) reports() []store.File {
	var text strings.Builder
	text.WriteString("# " + strings.TrimLeft(b.verdict+"\n\n"+b.Text, "\n") + "\n" + b.body)
	section(&text, "Added later", b.later)
	report := redact.Text(text.String())
	page := "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Evidence of a hang</title>\n<pre>" + html.EscapeString(report) + "</pre>\n"
	return []store.File{{Name: "report.html", Content: []byte(page)}, {Name: ReportName, Content: []byte(report)}}
}

// Listed returns the paths of the Flight Recorder dumps that are there.
func (g *Gatherer) Listed() (paths []string) {
	for _, pattern := range g.Dumps {
		found, _ := filepath.Glob(filepath.Join("/", g.Root, pattern)) // Validate has checked it
		paths = append(paths, found...)
	}
	return paths
}

// copy returns those of the listed dumps that were not looked at before. Anybody may write there: a
// name could be too long for the file beside the report, or forge its lines.
func (b *Bundle) copy(listed []string) (files []store.File, notes []string) {
	for _, path := range listed {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() || info.ModTime().Before(b.since) || b.body != "" && time.Since(info.ModTime()).Abs() < settled ||
			info.ModTime().Equal(b.written[path]) || b.files > maxDumpFiles || len(info.Name()) > maxName || strings.ContainsFunc(path, unicode.IsControl) {
			continue
		}
		b.files, b.written[path] = b.files+1, info.ModTime()
		if b.files > maxDumpFiles || info.Size() > maxDumps-b.bytes {
			notes = append(notes, "Flight Recorder dumps are left out, because all are more than 64 MiB or 64 files: "+path)
			continue
		}
		content, err := saved.ReadIn(filepath.Dir(path), filepath.Base(path), maxDumps-b.bytes) // anybody may write to the folder
		if err != nil {
			notes = append(notes, fmt.Sprintf("A Flight Recorder dump could not be read: %v", err))
			continue
		}
		b.bytes += int64(len(content))
		files = append(files, store.File{Name: b.prefix + strconv.Itoa(b.files-1) + "-" + filepath.Base(path), Content: content})
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

// sizes returns a line for each file.
func sizes(files []store.File) []string {
	return mlattr.Mapped(files, func(f store.File) string { return fmt.Sprintf("%s, %d bytes", f.Name, len(f.Content)) })
}

// body returns a report below the sentence that says what is wrong.
func (g *Gatherer) body(h *Hang, processes []process, gpus, left []string, files []store.File, notes []string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nSince %s, concluded at %s. Host %s.\n", h.Onset.UTC().Format(time.RFC3339), h.Detected.UTC().Format(time.RFC3339), workload.HostName(g.Root))
	if h.Next != "" {
		fmt.Fprintf(&b, "\nNext: %s\n", h.Next)
	}
	section(&b, "Evidence", h.Evidence)
	lines := mlattr.Mapped(processes, func(p process) string { return p.line() })
	if len(lines) == 0 {
		lines = []string{"None was found by the ids of the run, its job or its container, nor by a launcher's RANK."}
	} else if !processes[0].ids {
		lines = slices.Insert(lines, 0, "None has an id of the run: these are all of the host with a launcher's RANK.")
	}
	section(&b, "Processes of the run on this host", lines)
	section(&b, "GPUs of the run", gpus)
	section(&b, "Links, network file systems and blocked processes of this host", g.state)
	section(&b, "What this collector has left out since it started", left)
	section(&b, "Files beside this one", sizes(files))
	section(&b, "What is missing", notes)
	return b.String()
}
