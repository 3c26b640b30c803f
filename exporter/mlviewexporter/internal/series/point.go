package series

import (
	"time"

	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/fleet"
	"github.com/otelcol-ml/otelcol-ml/exporter/mlviewexporter/internal/kept"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/gpupoint"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/share"
)

// Labels tell the streams of a series apart. Fields that do not apply are empty.
type Labels struct {
	Namespace, Service string
	Run, Job, Rank     string
	Host               string
	// GPU is hw.id.
	GPU string
	// Collector is the name of the collector that has computed the series; a Store
	// sets it from Point.From.
	Collector string
	// Own are the values of Series.Own.
	Own [MaxOwn]string
}

// Keep makes the labels copies that share no memory with what was received.
func (l *Labels) Keep(texts *kept.Texts) {
	for _, text := range [...]*string{&l.Namespace, &l.Service, &l.Run, &l.Job, &l.Rank, &l.Host, &l.GPU, &l.Collector} {
		*text = texts.Of(*text)
	}
	for i, text := range l.Own {
		l.Own[i] = texts.Of(text)
	}
}

// Point is one value of a stream.
type Point struct {
	Series Series
	// Gone reports that the stream has ended: a point without a value.
	Gone bool
	// Delta reports that Value and Count are increases.
	Delta  bool
	Labels Labels
	// Value is the value, of a histogram its sum. Count is a histogram's count.
	Value, Count float64
	// Time is the point's time in nanoseconds since 1970, by its producer's clock.
	Time int64

	// Sender has sent the point, zero for the collector itself.
	Sender share.Sender
	// From is the collector that has sent the point.
	From fleet.Connection
	// GPU describes the device of a point of a GPU, nil for other points. Points
	// of one request may share it.
	GPU *Device
	// Simulated reports whether the value is simulated or recorded.
	Simulated bool
	// Overflow reports that the point stands for data that another component had no
	// room for.
	Overflow bool
	// Origin is a hash of all that the series, the labels, From, GPU, Simulated and
	// Overflow are read from. Points with the same one differ only in what an Update has. 0 means
	// that there is none.
	Origin uint64
}

// Update is a value of a stream that is known by the Origin of an earlier Point. Its
// other fields are as those of a Point.
type Update struct {
	Origin       uint64
	Value, Count float64
	Time         int64
	Gone, Delta  bool
}

// Update returns what is new in a point of a known stream.
func (p *Point) Update() Update {
	return Update{Origin: p.Origin, Value: p.Value, Count: p.Count, Time: p.Time, Gone: p.Gone, Delta: p.Delta}
}

// Device is what points say of a GPU besides their values.
type Device = gpupoint.Device

// Unix returns the time of seconds since 1970, in UTC. ok is false for times that
// no clock shows.
func Unix(seconds float64) (t time.Time, ok bool) {
	if !(seconds > 0 && seconds < 1e11) {
		return time.Time{}, false
	}
	whole := int64(seconds)
	return time.Unix(whole, int64((seconds-float64(whole))*1e9)).UTC(), true
}
