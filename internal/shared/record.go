package shared

import (
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
)

// Finish sets what mdatagen's builders of events cannot set, of each record.
func Finish(logs plog.Logs, observed pcommon.Timestamp, severity plog.SeverityNumber, body string) {
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				record.SetObservedTimestamp(observed)
				record.SetSeverityNumber(severity)
				record.SetSeverityText(strings.ToUpper(severity.String()))
				record.Body().SetStr(body)
			}
		}
	}
}
