package mlenrichprocessor

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// ofAda is the first 16 digits of what openssl gives as the HMAC-SHA256
// of "ada" with the key below.
const ofAda = "3c2b26e738017d52"

// TestUsersAreHashed has the same user under each key that clients have, on
// resources, spans and records: one value wherever it stands, nothing without a
// key, and the producer's attribute as it was.
func TestUsersAreHashed(t *testing.T) {
	keyed := createDefaultConfig().(*Config)
	keyed.HashKey = "only-for-this-test"
	var tested []string
	for _, client := range vocabulary.Tables() {
		for place, aliases := range map[string][]table.Alias{"resource": client.Resource, "span": client.Span} {
			for _, alias := range aliases {
				if alias.Canonical != mlattr.User {
					continue
				}
				tested = append(tested, place+" "+alias.Source)
				service := client.Name // "tuft" and "torchtel" are recognised by it
				for want, cfg := range map[string]*Config{ofAda: keyed, "": createDefaultConfig().(*Config)} {
					got := userOf(t, start(t, cfg), place, service, alias.Source)
					for signal, attrs := range got {
						assert.Equal(t, want, readID(attrs, mlattr.User), "%s of a %s in %s", alias.Source, place, signal)
						assert.Equal(t, "ada", readID(attrs, alias.Source), "%s of a %s in %s", alias.Source, place, signal)
					}
				}
			}
		}
	}
	for _, key := range []string{"user.id", "enduser.id", "enduser.pseudo.id"} {
		assert.Subset(t, tested, []string{"resource " + key, "span " + key})
	}
}

// userOf sends telemetry with a user and returns the attributes that had it.
func userOf(t *testing.T, p *pipelines, place, service, key string) map[string]pcommon.Map {
	t.Helper()
	td, ld, md := ptrace.NewTraces(), plog.NewLogs(), pmetric.NewMetrics()
	rs, rl, rm := td.ResourceSpans().AppendEmpty(), ld.ResourceLogs().AppendEmpty(), md.ResourceMetrics().AppendEmpty()
	for _, resource := range []pcommon.Resource{rs.Resource(), rl.Resource(), rm.Resource()} {
		resource.Attributes().PutStr("service.name", service)
		if place == "resource" {
			resource.Attributes().PutStr(key, "ada")
		}
	}
	span := rs.ScopeSpans().AppendEmpty().Spans().AppendEmpty()
	record := rl.ScopeLogs().AppendEmpty().LogRecords().AppendEmpty()
	point := rm.ScopeMetrics().AppendEmpty().Metrics().AppendEmpty().SetEmptyGauge().DataPoints().AppendEmpty()
	if place == "span" {
		span.Attributes().PutStr(key, "ada")
		record.Attributes().PutStr(key, "ada")
		point.Attributes().PutStr(key, "ada")
	}
	td, ld, md = p.sendTraces(t, td), p.sendLogs(t, ld), p.sendMetrics(t, md)
	rs, rl, rm = td.ResourceSpans().At(0), ld.ResourceLogs().At(0), md.ResourceMetrics().At(0)
	attrs := rm.ScopeMetrics().At(0).Metrics().At(0).Gauge().DataPoints().At(0).Attributes()
	require.Empty(t, readID(attrs, mlattr.User), "a user is no label: %s", key)
	if place == "resource" {
		return map[string]pcommon.Map{"traces": rs.Resource().Attributes(), "logs": rl.Resource().Attributes(), "metrics": rm.Resource().Attributes()}
	}
	return map[string]pcommon.Map{
		"traces": rs.ScopeSpans().At(0).Spans().At(0).Attributes(),
		"logs":   rl.ScopeLogs().At(0).LogRecords().At(0).Attributes(),
	}
}
