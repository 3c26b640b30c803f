// Package observed reads what resources and requests show of changes.
package observed

import (
	"cmp"
	"hash/maphash"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/change"
	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/streams"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

const (
	// maxObservations limits the different values of one resource in a request.
	maxObservations = 64
	// maxComposed limits the texts that a reader keeps.
	maxComposed = 1024
	// maxHashed is how much of a prompt is hashed, in bytes.
	maxHashed = 64 << 10
	// shownID is how much of the id of an image is shown, in bytes.
	shownID = 19
)

// composedSeed makes hashes unpredictable for those who send what is hashed.
var composedSeed = maphash.MakeSeed()

// Values are those of one request that may be changes. The zero Values collects nothing.
// It is not safe for concurrent use.
type Values struct {
	// History gets the values, and is nil if nobody wants to know of changes.
	History *change.History
	seen    []change.Observation
	// first is the index of the first value of the current resource.
	first int
	// composed are texts that are made of several values or of a secret, by the
	// hash of what they are made of, so that what recurs is allocated once.
	composed map[uint64]string
}

// Reset forgets all values and keeps the memory.
func (o *Values) Reset() {
	clear(o.seen)
	o.seen, o.first, o.History = o.seen[:0], 0, nil
}

// Pass passes the values, which were seen at now, to the History.
func (o *Values) Pass(now time.Time) {
	if o.History != nil {
		o.History.See(o.seen, now)
	}
}

// add adds a value of the current resource, unless it is there.
func (o *Values) add(value change.Observation) {
	if value.Value == "" || value.Value == mlattr.Other || len(o.seen)-o.first >= maxObservations {
		return
	}
	if !slices.Contains(o.seen[o.first:], value) {
		o.seen = append(o.seen, value)
	}
}

// Resource adds what a resource shows. run is the run of the resource, whose id may
// be empty.
func (o *Values) Resource(attrs pcommon.Map, source *streams.Source, facts *vocabulary.Facts) {
	if o.History == nil {
		return
	}
	o.first = len(o.seen)
	if source.Resource.Service == mlattr.Other {
		return
	}
	run := source.Run.ID
	if run == mlattr.Other {
		run = ""
	}
	var name, tag, id string
	for key, v := range attrs.All() {
		of := vocabulary.ChangeKeyOf(key)
		switch {
		case of == nil:
		case of.Kind != mlattr.ChangeImage:
			o.attribute(of, v, attrs, source.Resource, run)
		case of.Name == mlattr.ImageName:
			name = firstText(v)
		case of.Name == mlattr.ImageTag:
			tag = firstText(v)
		case of.Name == mlattr.ImageID:
			id = firstText(v)
			id = id[:min(len(id), shownID)]
		}
	}
	image := o.joined(o.joined(name, ":", tag), "@", id)
	o.add(change.Observation{Of: change.Subject{Resource: source.Resource}, Run: run, Kind: mlattr.ChangeImage, Value: image})
	if run == "" {
		return
	}
	of := change.Subject{Resource: source.Resource, Run: run}
	if world, ok := facts.IntAt(vocabulary.SlotWorldSize); ok {
		o.add(change.Observation{Of: of, Kind: mlattr.ChangeWorldSize, Value: strconv.FormatInt(world, 10)})
	}
	if source.Run.Rank != "" {
		o.add(change.Observation{Of: of, Kind: mlattr.ChangeNodes, Name: source.Run.Rank, Value: source.Run.Host})
	}
}

// Request adds what a request to a model shows: the model that was asked for, and the one that
// answered.
func (o *Values) Request(attrs pcommon.Map, of streams.Resource, requested, answered string) {
	if o.History == nil || of.Service == mlattr.Other {
		return
	}
	service := change.Subject{Resource: of}
	o.add(change.Observation{Of: service, Kind: mlattr.ChangeModel, Value: requested})
	if requested != "" {
		o.add(change.Observation{Of: service, Kind: mlattr.ChangeAnsweringModel, Name: requested, Value: answered})
	}
	for key, value := range attrs.All() {
		if is := vocabulary.ChangeKeyOf(key); is != nil && mlattr.Secret(is.Kind) {
			o.attribute(is, value, attrs, of, "")
		}
	}
}

// attribute adds the value of one attribute. Settings of a run are its own, all
// else is of the program.
func (o *Values) attribute(of *table.ChangeKey, v pcommon.Value, attrs pcommon.Map, resource streams.Resource, run string) {
	one := change.Observation{Of: change.Subject{Resource: resource}, Run: run, Kind: of.Kind, Name: of.Name}
	switch {
	case mlattr.Secret(of.Kind):
		one.Value = o.hashed(v)
		if run != "" {
			one.Of.Run, one.Run = run, ""
		}
	case of.Kind == mlattr.ChangeFramework:
		if of.NameKey != "" {
			one.Name = cmp.Or(mlattr.TextAt(attrs, of.NameKey), one.Name)
		}
		version, _ := mlattr.ReadText(v)
		one.Value = o.joined(one.Name, " ", version)
	default:
		one.Value, _ = mlattr.ReadText(v)
	}
	o.add(one)
}

// firstText returns the text of a value, or of the first one of a list.
func firstText(v pcommon.Value) string {
	if v.Type() == pcommon.ValueTypeSlice && v.Slice().Len() > 0 {
		v = v.Slice().At(0)
	}
	text, _ := mlattr.ReadText(v)
	return text
}

// joined returns a+separator+b, or one of them if the other is empty.
func (o *Values) joined(a, separator, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	sum := maphash.Comparable(composedSeed, [...]string{a, separator, b})
	return o.compose(sum, func() string { return a + separator + b })
}

// hashed returns the keyed hash of a value.
func (o *Values) hashed(v pcommon.Value) string {
	text := v.Str()
	if v.Type() != pcommon.ValueTypeStr {
		text, _ = mlattr.Text(v, maxHashed)
	}
	sum := maphash.String(composedSeed, text)
	return o.compose(sum, func() string { return o.History.Hash(text) })
}

// compose returns the text of a hash. It makes and keeps it if it is not known.
func (o *Values) compose(sum uint64, create func() string) string {
	if known, ok := o.composed[sum]; ok {
		return known
	}
	if o.composed == nil || len(o.composed) >= maxComposed {
		o.composed = make(map[uint64]string)
	}
	text := strings.Clone(create())
	o.composed[sum] = text
	return text
}
