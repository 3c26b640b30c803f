package mlguardextension

import (
	"context"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"

	"go.opentelemetry.io/collector/extension/extensionmiddleware"

	"github.com/otelcol-ml/otelcol-ml/extension/mlguardextension/internal/request"
)

// GetHTTPHandler returns a handler that checks a body while the receiver reads
// it, after decompression and within the receiver's size limit. The receiver
// answers with the error of the body. On the loopback interface the handler refuses
// to be read under a name that is not the machine's (DNS rebinding).
func (g *guard) GetHTTPHandler(context.Context) (extensionmiddleware.WrapHTTPHandlerFunc, error) {
	return func(_ context.Context, next http.Handler) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if reads := r.Method == http.MethodGet || r.Method == http.MethodHead; reads && isLocal(r) && !g.names.Has(r.Host) {
				http.Error(w, "ml_guard: this name is not one of this machine. Ask by its address, its name or localhost.", http.StatusForbidden)
				return
			}
			// The receiver determines the encoding in the same way.
			var check request.Check
			switch mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); {
			case err != nil:
			case mediaType == "application/x-protobuf":
				check = request.NewProtobuf(r.URL.Path, g.limits)
			case mediaType == "application/json":
				check = request.NewJSON(g.limits)
			}
			if check != nil {
				b := &body{ReadCloser: r.Body, guard: g, ctx: r.Context(), check: check}
				r.Body = b
				defer func() { g.progress.end(b.memory) }()
			}
			next.ServeHTTP(w, r)
		}), nil
	}, nil
}

// isLocal reports whether a request came to an address that only programs on this
// machine can reach. A browser is one, and may ask for the page of a stranger.
func isLocal(r *http.Request) bool {
	address, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return ok && address.IP.IsLoopback()
}

// body is a request's body whose Read fails once the request exceeds a limit. The
// receiver decodes it after its end.
type body struct {
	io.ReadCloser
	guard   *guard
	ctx     context.Context //nolint:containedctx // that of the one request
	check   request.Check
	memory  int64 // of the request, after its end
	refusal error
}

func (b *body) Read(p []byte) (int, error) {
	if b.refusal != nil {
		return 0, b.refusal
	}
	n, err := b.ReadCloser.Read(p)
	b.check.Write(p[:n])
	if limit := b.check.Exceeded(); limit != "" {
		b.refusal = b.guard.refuse(b.ctx, limit)
		// A client that is still sending when the connection closes does not
		// read the answer. The receiver's size limit bounds this read.
		_, _ = io.Copy(io.Discard, b.ReadCloser)
		return 0, b.refusal
	}
	if errors.Is(err, io.EOF) && b.memory == 0 {
		memory := b.check.Memory()
		if !b.guard.progress.begin(memory) {
			b.refusal = b.guard.refuse(b.ctx, request.LimitMemory)
			return 0, b.refusal
		}
		b.memory = memory
	}
	return n, err
}
