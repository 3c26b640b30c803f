//go:build linux

package main

import (
	"encoding/binary"
	"math/rand/v2"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
)

// recordAttributes are what Python's logging and its OTLP handler add to a record.
var recordAttributes = map[string]any{
	"code.file.path": "/app/train.py", "code.function.name": "train", "code.line.number": 17, "step": nil, "request_id": nil,
}

// logsRequest has records of each client of the traces in turn, half of them with the ids
// of a trace.
func logsRequest(random *rand.Rand) plog.Logs {
	ld := plog.NewLogs()
	for at, left := 0, itemsOfRequest; left > 0; at++ {
		rl := ld.ResourceLogs().AppendEmpty()
		put(rl.Resource().Attributes(), clients[at%len(clients)].resource, "")
		records := rl.ScopeLogs().AppendEmpty().LogRecords()
		for range min(left, 32) {
			left--
			record := records.AppendEmpty()
			record.SetTimestamp(pcommon.NewTimestampFromTime(time.Now()))
			record.SetObservedTimestamp(record.Timestamp())
			record.SetSeverityNumber(plog.SeverityNumberInfo)
			record.SetSeverityText("INFO")
			record.Body().SetStr("the loss of this step is 0.693, the learning rate 0.0001, and the data loader waited for 12 ms")
			put(record.Attributes(), recordAttributes, strconv.FormatUint(random.Uint64(), 36))
			if left%2 == 0 {
				var trace [16]byte
				binary.NativeEndian.PutUint64(trace[:], random.Uint64())
				record.SetTraceID(trace)
				record.SetSpanID(spanID(random.Uint64() | 1))
			}
		}
	}
	return ld
}

func countRecords(encoded []byte) (items, attributes int, err error) {
	request := plogotlp.NewExportRequest()
	if err := request.UnmarshalProto(encoded); err != nil {
		return 0, 0, err
	}
	for _, rl := range request.Logs().ResourceLogs().All() {
		for _, sl := range rl.ScopeLogs().All() {
			items += sl.LogRecords().Len()
			for _, record := range sl.LogRecords().All() {
				attributes += record.Attributes().Len()
			}
		}
	}
	return items, attributes, nil
}
