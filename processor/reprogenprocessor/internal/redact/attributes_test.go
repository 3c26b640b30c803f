package redact

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

func TestSpanName(t *testing.T) {
	for name, want := range map[string]string{
		"snakepit.grpc.execute":     "snakepit.grpc.execute",
		"BridgeService/ExecuteTool": "BridgeService/ExecuteTool",
		"chat gpt-4o":               Mark,
		"GET /users/mary":           Mark,
		"of Mary":                   Mark,
		"http://h/users/mary":       Mark,
		"GET http://h/users/mary":   Mark,
		"mary's":                    Mark,
		"":                          "",
	} {
		assert.Equal(t, want, SpanName(name), name)
	}
}

func TestAttributes(t *testing.T) {
	in := jsontree.Of(
		"service.name", "trainer", "host.name", "node-7", "service.instance.id", "snakepit@node-a", "process.pid", jsontree.Int(17),
		"ml.loss.task.up", jsontree.Number("0.25"), "repro.packages", jsontree.Array{"torch==2.4"}, "error.type", "app.ShapeError",
		"thread.name", "worker of mary", "service.version", "mary@example.com", "code.file.path", "/home/mary/train.py",
		"vcs.ref.head.name", "mary/fix", "acme.account", jsontree.Int(4711), "user.id", jsontree.Int(17), "result", jsontree.Int(3),
		"exception.type", "mary", "error_type", "mary", "acme.note", nil,
	)
	kept := jsontree.Object{}
	for i, m := range in {
		if i > 6 && m.Value != nil {
			m.Value = Mark
		}
		kept = append(kept, m)
	}
	assert.Equal(t, kept, Attributes(append(in, jsontree.Member{Key: "of Mary", Value: nil})))
}
