package correlate

import (
	"slices"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// Known is what a Store knows of some spans and their traces.
type Known map[spanKey]known

// known is what is known of one span and its trace: what the span hands down,
// and what the trace agrees about.
type known struct{ span, trace set[string] }

// key returns the value of a key, that of the span before that of the trace. inferred
// reports whether that has an inferred run.
func (k *known) key(key int) (value string, from origin, inferred bool) {
	if k.span[key] != "" {
		return k.span[key], fromSpan, k.span[keyInferred] != ""
	}
	return k.trace[key], fromTrace, k.trace[keyInferred] != ""
}

// maxLookup is how many spans are looked up with the store locked once: others may come
// in between.
const maxLookup = 1024

// Record is what correlation needs of a log record that names a trace.
type Record struct {
	// Attrs are the record's attributes.
	Attrs pcommon.Map
	// Resource is the index of its resource, Run the run of that, or "", and Inferred
	// whether it was inferred.
	Resource int
	Run      string
	Inferred bool

	span spanKey
	stated
}

// ReadRecord reads the facts of a log record. It adds to them the run that
// follows from its training run.
func ReadRecord(f *vocabulary.Facts, trace pcommon.TraceID, id pcommon.SpanID) Record {
	return Record{span: spanKey{trace, id}, stated: readStated(f)}
}

// Trace returns the trace that the record names.
func (r *Record) Trace() pcommon.TraceID { return r.span.trace }

// Lookup returns what is known of the spans and traces of records.
func (s *Store) Lookup(records []Record) Known {
	k := make(Known)
	var f finder
	for some := range slices.Chunk(records, maxLookup) {
		s.lookup(k, some, &f)
	}
	return k
}

func (s *Store) lookup(k Known, records []Record, f *finder) {
	now := s.Lock()
	defer s.Unlock()
	for i := range records {
		key := records[i].span
		if _, done := k[key]; !done {
			k[key] = f.known(s, key, now)
		}
	}
}

// learn returns the key that the record gets of its span or trace, or "", as known.key does.
func (r *Record) learn(key int, of *known) (value string, from origin, inferred bool) {
	if r.foreign || r.present[key] {
		return "", notInherited, false
	}
	value, from, inferred = of.key(key)
	if key == keyRun && value != "" && r.Run != "" && (value == r.Run || inferred || from != fromSpan && !r.Inferred) {
		// The resource has the record's run, unless the record's span is of
		// another one, or the resource's was inferred.
		return "", notInherited, false
	}
	return value, from, inferred
}

// Write adds to the record what its span hands down, or else
// what its trace agrees about. It reports whether the record has a run then, of
// its own or of others.
func (r *Record) Write(k Known, sources *Sources) (hasRun bool) {
	added := false
	of := k[r.span]
	for key := range keyInferred {
		value, from, inferred := r.learn(key, &of)
		if value == "" {
			continue
		}
		r.Attrs.PutStr(keyNames[key], value)
		r.inherited[key], added = from, true
		if key == keyRun && !r.present[keyInferred] && inferred {
			r.Attrs.PutBool(mlattr.RunInferred, true)
		}
	}
	if added {
		r.Attrs.PutStr(mlattr.CorrelationSource, sources.text(r.inherited))
	}
	return r.present[keyRun] || r.present[keyInferred] || r.inherited[keyRun] != notInherited
}
