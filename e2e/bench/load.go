//go:build linux

package main

import (
	"math/rand/v2"

	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/collector/pdata/pmetric/pmetricotlp"
	"go.opentelemetry.io/collector/pdata/ptrace/ptraceotlp"
)

// itemsOfRequest is what a batching client sends at most by default.
const itemsOfRequest = 512

// load is what is sent.
type load struct {
	// method is its gRPC method in OTLP.
	method string
	// request returns an encoded request of itemsOfRequest items.
	request func(random *rand.Rand) ([]byte, error)
	// count returns the number of items of a request and of their attributes.
	count func(encoded []byte) (items, attributes int, err error)
}

var loads = map[string]load{
	"traces": {
		method: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
		request: func(random *rand.Rand) ([]byte, error) {
			return ptraceotlp.NewExportRequestFromTraces(tracesRequest(random)).MarshalProto()
		},
		count: countSpans,
	},
	"points": {
		method: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
		request: func(random *rand.Rand) ([]byte, error) {
			return pmetricotlp.NewExportRequestFromMetrics(pointsRequest(random)).MarshalProto()
		},
		count: countPoints,
	},
	"logs": {
		method: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
		request: func(random *rand.Rand) ([]byte, error) {
			return plogotlp.NewExportRequestFromLogs(logsRequest(random)).MarshalProto()
		},
		count: countRecords,
	},
}

// encode returns encoded requests. The same seed makes the same; all ids of a seed are
// new.
func encode(of load, seed uint64, requests int) ([][]byte, error) {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // no secret
	encoded := make([][]byte, 0, requests)
	for range requests {
		raw, err := of.request(random)
		if err != nil {
			return nil, err
		}
		encoded = append(encoded, raw)
	}
	return encoded, nil
}
