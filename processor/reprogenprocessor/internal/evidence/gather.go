package evidence

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/hoststate"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/saved"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/workload"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/redact"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/store"
)

const (
	// maxDumps bounds all Flight Recorder dumps, in bytes.
	maxDumps = 64 << 20
	// maxDumpFiles is how many dumps are taken, and dumpsSince how long before the onset the
	// oldest of them was written: a job's dumps of an earlier hang stay.
	maxDumpFiles = 64
	dumpsSince   = time.Hour
	// maxName is how long their names may be, in bytes.
	maxName = 200
)

// ReportName is the file that a person reads first.
const ReportName = "report.md"

// Gatherer gathers the evidence of hangs on one host.
type Gatherer struct {
	// Root is where the host's root directory is mounted, "" for /.
	Root string
	// Dumps are patterns of the files that hold Flight Recorder dumps.
	Dumps     []string
	processes *workload.Processes
	mounts    *hoststate.Mounts
}

// New returns a Gatherer.
func New(root string, dumps []string) *Gatherer {
	return &Gatherer{Root: root, Dumps: dumps, processes: workload.NewNamespaceProcesses(root), mounts: hoststate.NewMounts(root)}
}

// Gather returns the files of a hang's evidence. gpus, log and left are lines about the run's
// GPUs, the newest log records, and what the collector has left out. What cannot be had is said in the report. When ctx ends, it
// returns what it has. Of a hang elsewhere it returns none if nothing of the run is here.
func (g *Gatherer) Gather(ctx context.Context, h *Hang, gpus, log, left []string) []store.File {
	var notes []string
	processes, blocked, unread := g.processesOf(ctx, h)
	if h.Elsewhere && len(gpus) == 0 && (len(processes) == 0 || !processes[0].ids) {
		return nil
	}
	if unread > 0 {
		notes = append(notes, fmt.Sprintf("%d processes of the host could not be looked into: that needs CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH.", unread))
	}
	dumps, missed := g.dumps(h.Onset)
	notes = append(notes, missed...)
	files := []store.File{{Name: ReportName}}
	files = append(files, dumps...)
	if len(log) > 0 {
		files = append(files, store.File{Name: "log.txt", Content: []byte(strings.Join(log, "\n") + "\n")})
	}
	files[0].Content = []byte(redact.Text(g.report(h, processes, gpus, append(g.host(ctx), blocked...), left, files[1:], notes)))
	return files
}

// dumps returns the Flight Recorder dumps that were written since shortly before a hang. Anybody
// may write there: a name could be too long for the file beside the report, or forge its lines.
func (g *Gatherer) dumps(onset time.Time) (files []store.File, notes []string) {
	left := int64(maxDumps)
	for _, pattern := range g.Dumps {
		found, _ := filepath.Glob(filepath.Join("/", g.Root, pattern)) // Validate has checked it
		for _, path := range found {
			info, err := os.Lstat(path)
			if err != nil || !info.Mode().IsRegular() || info.ModTime().Before(onset.Add(-dumpsSince)) ||
				len(info.Name()) > maxName || strings.ContainsFunc(path, unicode.IsControl) {
				continue
			}
			if info.Size() > left || len(files) == maxDumpFiles {
				notes = append(notes, "A Flight Recorder dump is left out, because all are more than 64 MiB or 64 files: "+path)
				continue
			}
			content, err := saved.ReadIn(filepath.Dir(path), filepath.Base(path), left) // anybody may write to the folder
			if err != nil {
				notes = append(notes, fmt.Sprintf("A Flight Recorder dump could not be read: %v", err))
				continue
			}
			left -= int64(len(content))
			files = append(files, store.File{Name: "dump-" + strconv.Itoa(len(files)) + "-" + filepath.Base(path), Content: content})
		}
	}
	return files, notes
}

// report begins with what is wrong and where to look next.
func (g *Gatherer) report(h *Hang, processes []process, gpus, host, left []string, files []store.File, notes []string) string {
	var b strings.Builder
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(&b, "\n## %s\n\n", title)
		}
		for _, line := range lines {
			fmt.Fprintf(&b, "- %s\n", line)
		}
	}
	fmt.Fprintf(&b, "# %s\n\nSince %s, concluded at %s. Host %s.\n", h.Text, h.Onset.UTC().Format(time.RFC3339), h.Detected.UTC().Format(time.RFC3339), workload.HostName(g.Root))
	if h.Next != "" {
		fmt.Fprintf(&b, "\nNext: %s\n", h.Next)
	}
	section("Evidence", h.Evidence)
	var lines, names []string
	for i := range processes {
		lines = append(lines, processes[i].line())
	}
	if len(lines) == 0 {
		lines = []string{"None was found by the ids of the run, its job or its container, nor by a launcher's RANK."}
	} else if !processes[0].ids {
		lines = slices.Insert(lines, 0, "None has an id of the run: these are all of the host with a launcher's RANK.")
	}
	section("Processes of the run on this host", lines)
	section("GPUs of the run", gpus)
	section("Links, network file systems and blocked processes of this host", host)
	section("What this collector has left out since it started", left)
	for i := range files {
		names = append(names, fmt.Sprintf("%s, %d bytes", files[i].Name, len(files[i].Content)))
	}
	section("Files beside this one", names)
	section("What is missing", notes)
	return b.String()
}
