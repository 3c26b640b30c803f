package origin

import (
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/lastused"
)

// askAgain is after how long a file is asked again who writes it: a program that starts
// again may write to the same file.
const askAgain = time.Minute

// Known remembers the origins of files and streams, so that the spans and the records of one
// have the same. It is safe for concurrent use.
type Known struct {
	component.StartFunc
	component.ShutdownFunc
	now func() time.Time

	mu      sync.Mutex
	writers *writers
	by      *lastused.Map[string, *known]
}

type known struct {
	origin *Origin
	asked  time.Time
}

// NewKnown returns a Known of at most limit files and streams.
func NewKnown(limit int, now func() time.Time) *Known {
	return &Known{now: now, writers: newWriters(now), by: lastused.NewMap[string, *known](max(limit, 2))}
}

// Of returns the origin of a record's file or stream: of its resource, and of its
// attributes, which name the file. It must not be changed.
func (k *Known) Of(resource, record pcommon.Map) *Origin {
	key := Key(resource) + mlattr.FirstText(record, FilePath)
	k.mu.Lock()
	defer k.mu.Unlock()
	now := k.now()
	before, ok := k.by.Get(key)
	if ok && (!before.origin.plain || now.Sub(before.asked) < askAgain) {
		return before.origin
	}
	o := readOrigin(resource, record, k.writers.of)
	if ok {
		before.asked = now
		if a, b := &o.writer, &before.origin.writer; !a.NamespacePID.Known || a.NamespacePID == b.NamespacePID && a.Start.Sub(b.Start).Abs() < 2*time.Second {
			return before.origin // the program may have ended since it wrote the lines
		}
	}
	k.by.Put(strings.Clone(key), &known{o, now})
	return o
}
