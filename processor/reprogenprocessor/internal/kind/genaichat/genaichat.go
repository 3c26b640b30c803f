// Package genaichat is the kind of artifacts that send a conversation with a model to a
// server which their user names.
package genaichat

import (
	"embed"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/kind"
)

//go:embed script/*.py.tmpl
var files embed.FS

// New returns the kind.
func New() *kind.Kind {
	return &kind.Kind{
		Name:        failure.GenAIChat,
		Recognise:   hasConversation,
		Read:        chatCall,
		FromFailure: fromFailure,
		Parts:       func(jsontree.Object) []string { return []string{"source", "connect", "address", "chat"} },
		Files:       files,
		Flags:       func(spec jsontree.Object) string { return " --base-url URL" + kind.SetFlag(spec, "payload.request") },
		Head:        chatHead,
		Explains:    true,
	}
}
