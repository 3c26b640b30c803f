package sentlog

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// maxLine is the longest line that a reader accepts, in bytes.
const maxLine = 16 << 20

// reader reads entries one by one.
type reader struct {
	lines *bufio.Scanner
	line  int
}

// newReader reads from in.
func newReader(in io.Reader) *reader {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	return &reader{lines: lines}
}

// next returns the next entry, or io.EOF after the last one. Any other error
// names the line and is final.
func (r *reader) next() (Entry, error) {
	for r.lines.Scan() {
		r.line++
		if len(r.lines.Bytes()) == 0 {
			continue
		}
		entry, err := parse(r.lines.Bytes())
		if err != nil {
			return Entry{}, fmt.Errorf("line %d: %w", r.line, err)
		}
		return entry, nil
	}
	if err := r.lines.Err(); err != nil {
		return Entry{}, fmt.Errorf("line %d: %w", r.line+1, err)
	}
	return Entry{}, io.EOF
}

func parse(line []byte) (Entry, error) {
	var entry Entry
	if err := json.Unmarshal(line, &entry); err != nil {
		return Entry{}, err
	}
	members := map[string]bool{
		TypeHeader:   entry.Header != nil,
		TypeSpan:     entry.Span != nil,
		TypeMetric:   entry.Metric != nil,
		TypeLog:      entry.Log != nil,
		TypeRejected: entry.Rejected != nil,
		TypeSummary:  entry.Summary != nil,
	}
	present, known := members[entry.Type]
	switch {
	case !known:
		return Entry{}, fmt.Errorf("unknown entry type %q", entry.Type)
	case !present:
		return Entry{}, fmt.Errorf("entry of type %q has no member %q", entry.Type, entry.Type)
	}
	for name, set := range members {
		if set && name != entry.Type {
			return Entry{}, fmt.Errorf("entry of type %q has a member %q", entry.Type, name)
		}
	}
	if entry.Header != nil && entry.Header.Version != Version {
		return Entry{}, fmt.Errorf("format version %d, want %d", entry.Header.Version, Version)
	}
	return entry, nil
}

// Log is a whole log in memory.
type Log struct {
	Header   *Header
	Spans    []*Span
	Metrics  []*Metric
	Logs     []*LogEntry
	Rejected []*Rejected
	// Summary is nil where the generator was killed.
	Summary *Summary
}

// readAll reads a whole log. On an error it returns what came before it too: a
// killed generator leaves a last line that is cut.
func readAll(in io.Reader) (*Log, error) {
	reader := newReader(in)
	log := &Log{}
	for {
		entry, err := reader.next()
		if errors.Is(err, io.EOF) {
			return log, nil
		}
		if err != nil {
			return log, err
		}
		switch entry.Type {
		case TypeHeader:
			log.Header = entry.Header
		case TypeSpan:
			log.Spans = append(log.Spans, entry.Span)
		case TypeMetric:
			log.Metrics = append(log.Metrics, entry.Metric)
		case TypeLog:
			log.Logs = append(log.Logs, entry.Log)
		case TypeRejected:
			log.Rejected = append(log.Rejected, entry.Rejected)
		case TypeSummary:
			log.Summary = entry.Summary
		}
	}
}

// ReadFile reads the log at path.
func ReadFile(path string) (*Log, error) {
	file, err := os.Open(path) //nolint:gosec // The caller names the log to read.
	if err != nil {
		return nil, err
	}
	log, err := readAll(file)
	return log, errors.Join(err, file.Close())
}
