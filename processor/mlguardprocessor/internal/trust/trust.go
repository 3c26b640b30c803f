// Package trust decides whose word counts: readings of GPUs and what collectors have
// concluded are believed of the collector itself, of authenticated senders and of
// those in a list. What others send under these names is dropped.
package trust

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"

	"github.com/otelcol-ml/otelcol-ml/internal/content"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
)

// listedMetrics are the metrics that only this project's components write, and the
// names of Prometheus' recording rules.
//
//go:embed metrics.txt
var listedMetrics string

// metrics has the names as Prometheus spells them, without unit and type.
var metrics = func() map[string]bool {
	names := make(map[string]bool)
	for name := range strings.Lines(listedMetrics) {
		names[string(appendWords(nil, name))] = true
	}
	return names
}()

// events are the log records that only this project's components write.
var events = map[string]bool{
	mlattr.GPUXIDEvent: true, "nvidia.nvswitch.sxid": true, "nccl.rank.change": true, "pytorch.flight_recorder.dump": true, "pytorch.flight_recorder.wait": true,
	mlattr.EventChange: true, mlattr.Problem: true, "repro.artifact": true,
}

// Filter has the senders that are believed. It is safe for concurrent use. A nil Filter
// believes all.
type Filter struct {
	any      bool
	networks []netip.Prefix
}

// New returns a Filter that believes a list that Validate accepts.
func New(senders []string) *Filter {
	f := &Filter{any: slices.Contains(senders, Any)}
	for _, sender := range senders {
		of, _ := networks(sender)
		f.networks = append(f.networks, of...)
	}
	return f
}

type believedKey struct{}

// Mark marks the context of a request whose sender is believed, so that other Filters
// in the pipelines that it is forwarded to believe it too. A nil Filter marks nothing.
func (f *Filter) Mark(ctx context.Context) context.Context {
	if f == nil || sender.From(ctx).Kind != sender.Address || !f.believes(ctx) {
		return ctx
	}
	return context.WithValue(ctx, believedKey{}, true)
}

// believes reports whether the sender of a request is believed.
func (f *Filter) believes(ctx context.Context) bool {
	if f == nil || f.any || ctx.Value(believedKey{}) != nil || sender.From(ctx).Kind != sender.Address {
		return true
	}
	ip := sender.IP(ctx)
	return slices.ContainsFunc(f.networks, func(network netip.Prefix) bool { return network.Contains(ip) })
}

// Metrics drops from md what its sender is not believed, and returns how many points.
func (f *Filter) Metrics(ctx context.Context, md pmetric.Metrics) (dropped int) {
	if f.believes(ctx) {
		return 0
	}
	before := md.DataPointCount()
	md.ResourceMetrics().RemoveIf(func(rm pmetric.ResourceMetrics) bool {
		rm.ScopeMetrics().RemoveIf(func(sm pmetric.ScopeMetrics) bool {
			had := sm.Metrics().Len()
			sm.Metrics().RemoveIf(func(m pmetric.Metric) bool {
				return isCollectors(m.Name(), m.Unit()) && !keepOtherHardware(m)
			})
			return had > 0 && sm.Metrics().Len() == 0
		})
		return rm.ScopeMetrics().Len() == 0 && before > 0
	})
	return before - md.DataPointCount()
}

// Logs drops from ld what its sender is not believed, and returns how many records.
func (f *Filter) Logs(ctx context.Context, ld plog.Logs) (dropped int) {
	if f.believes(ctx) {
		return 0
	}
	before := ld.LogRecordCount()
	ld.ResourceLogs().RemoveIf(func(rl plog.ResourceLogs) bool {
		had := rl.ScopeLogs().Len()
		rl.ScopeLogs().RemoveIf(func(sl plog.ScopeLogs) bool {
			had := sl.LogRecords().Len()
			sl.LogRecords().RemoveIf(func(record plog.LogRecord) bool { return events[record.EventName()] })
			return had > 0 && sl.LogRecords().Len() == 0
		})
		return had > 0 && rl.ScopeLogs().Len() == 0
	})
	return before - ld.LogRecordCount()
}

// keepOtherHardware drops the points of a metric except, under the names that the
// conventions give to all hardware, those of hardware that is no GPU. It reports whether
// there are any.
func keepOtherHardware(m pmetric.Metric) bool {
	name := m.Name()
	if !strings.HasPrefix(name, "hw.") || strings.HasPrefix(name, "hw.gpu.") || m.Type() != pmetric.MetricTypeGauge && m.Type() != pmetric.MetricTypeSum {
		return false
	}
	points := mlattr.NumberPoints(m)
	points.RemoveIf(func(p pmetric.NumberDataPoint) bool { return !isOtherHardware(p.Attributes()) })
	return points.Len() > 0
}

// isOtherHardware reports whether attributes name a type of hardware, and not a GPU. An
// attribute that becomes the same label in Prometheus could name another one.
func isOtherHardware(attributes pcommon.Map) (other bool) {
	var buffer [32]byte
	for key, v := range attributes.All() {
		switch {
		case key == mlattr.HardwareType:
			other = v.Type() == pcommon.ValueTypeStr && v.Str() != "" && v.Str() != mlattr.HardwareTypeGPU
		case len(key) < len(buffer) && string(appendWords(buffer[:0], key)) == "hw_type":
			return false
		}
	}
	return other
}

// isCollectors reports whether a metric has the name of one that only collectors write,
// here or in Prometheus, where the unit may become a part of it.
func isCollectors(name, unit string) bool {
	var buffer [256]byte
	if len(name)+len(unit) >= len(buffer) {
		return false // as none is
	}
	key := appendWords(buffer[:0], name)
	return isListed(key) || unit != "" && isListed(appendWords(key, unit))
}

// isListed reports whether a name is listed, with or without unit and type at its end.
func isListed(key []byte) bool {
	for {
		if metrics[string(key)] {
			return true
		}
		end := bytes.LastIndexByte(key, '_')
		if end < 0 || !suffixes[string(key[end+1:])] {
			return false
		}
		key = key[:end]
	}
}

// suffixes are the words that Prometheus' exporters put at the end of a name.
var suffixes = content.Words("total ratio bucket count sum info per second seconds milliseconds minutes hours days bytes kibibytes mebibytes gibibytes joules watts celsius hertz volts amperes percent USD")

// appendWords appends the words of a name to those of another one. Prometheus' exporters
// join them by underscores, and leave out what is between them. A colon is part of a word.
func appendWords(to []byte, name string) []byte {
	apart := len(to) > 0
	for i := range len(name) {
		c := name[i]
		if c|0x20 >= 'a' && c|0x20 <= 'z' || c >= '0' && c <= '9' || c == ':' {
			if apart {
				to, apart = append(to, '_'), false
			}
			to = append(to, c)
			continue
		}
		apart = len(to) > 0
	}
	return to
}

// The senders that have a name instead of addresses.
const (
	// Any is every sender.
	Any = "any"
	// Loopback is every process of this machine.
	Loopback = "loopback"
)

// Validate returns an error that names the first sender that is no address.
func Validate(senders []string) error {
	for i, sender := range senders {
		if _, err := networks(sender); err != nil {
			return fmt.Errorf("trusted_senders[%d] is %q; it must be an IP address, a network such as 10.0.0.0/8, %q or %q", i, sender, Loopback, Any)
		}
	}
	return nil
}

// networks returns the networks of a sender. Any has none.
func networks(sender string) ([]netip.Prefix, error) {
	switch sender {
	case Any:
		return nil, nil
	case Loopback:
		return []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}, nil
	}
	if network, err := netip.ParsePrefix(sender); err == nil {
		return []netip.Prefix{network.Masked()}, nil
	}
	address, err := netip.ParseAddr(sender)
	if err != nil {
		return nil, err
	}
	address = address.Unmap().WithZone("")
	return []netip.Prefix{netip.PrefixFrom(address, address.BitLen())}, nil
}
