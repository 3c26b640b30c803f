package decompress

import (
	"bytes"
	"io"
	_ "unsafe" // for go:linkname

	_ "go.opentelemetry.io/collector/config/confighttp" // fills the map before
)

// stockDecoders are confighttp's own. It has no way to replace a decoder of a
// server that another component starts. docs/adr/0049-decompression.md has the
// reasons, and docs/upstream/ what would make this unnecessary.
//
//go:linkname stockDecoders go.opentelemetry.io/collector/config/confighttp.availableDecoders
var stockDecoders map[string]func(body io.ReadCloser) (io.ReadCloser, error)

func init() {
	if stockDecoders["zstd"] == nil {
		panic("confighttp keeps its decoders elsewhere in this version: ml_guard cannot bound them")
	}
	for name, stock := range stockDecoders {
		open := func(request io.Reader) (io.Reader, error) { return stock(io.NopCloser(request)) }
		switch name {
		case "", "snappy": // no compression; and what confighttp does not take from here
			continue
		case "zstd":
			open = newZstd
		}
		stockDecoders[name] = func(body io.ReadCloser) (io.ReadCloser, error) {
			// The server limits the size of a body.
			request, err := io.ReadAll(body)
			if err != nil {
				return nil, err
			}
			return &content{request: bytes.NewReader(request), open: open}, nil
		}
	}
}
