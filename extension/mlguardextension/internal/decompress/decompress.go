// Package decompress bounds the memory that compressed requests take before the
// Collector authenticates or checks them, for every gRPC and HTTP server of a
// process, whatever its configuration. Importing the package is enough.
//
// A zstd frame of ten bytes can declare a window of 512 MiB, which the stock
// decoder allocates; an lz4 frame, blocks of 4 MiB; and 4 KiB of gzip are 4 MiB of
// content. Here a window has at most 8 MiB, each request is received completely
// before it is decompressed, and few are decompressed at a time: a client that
// sends slowly holds only what it has sent.
package decompress

import (
	"bytes"
	"io"
	"runtime"
	"sync"
	_ "unsafe" // for go:linkname

	"github.com/klauspost/compress/zstd"
	_ "go.opentelemetry.io/collector/config/configgrpc" // registers the stock compressors before
	_ "go.opentelemetry.io/collector/config/confighttp" // fills the map before
	"google.golang.org/grpc/encoding"
)

// maxWindow is the largest window that a zstd frame may declare. RFC 8878
// recommends that decoders take 8 MiB; encoders declare more only if asked to,
// and then only for content of that size.
const maxWindow = 8 << 20

// slots has a place for each request that may be decompressed at the same time.
var slots = make(chan struct{}, runtime.GOMAXPROCS(0))

// content is what a request has compressed. It has a slot from the first Read to
// the end, the first error, or Close. Whoever does not read it has none.
type content struct {
	request io.Reader // received completely
	open    func(io.Reader) (io.Reader, error)

	decoder io.Reader // nil before the first Read
	err     error
}

// Read reads the content.
func (c *content) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	if c.decoder == nil {
		slots <- struct{}{}
		if c.decoder, c.err = c.open(c.request); c.err != nil {
			<-slots
			return 0, c.err
		}
	}
	n, err := c.decoder.Read(p)
	if err != nil {
		c.end(err)
	}
	return n, err
}

// Close returns the slot. It always returns nil.
func (c *content) Close() error {
	if c.err == nil {
		c.end(io.ErrClosedPipe)
	}
	return nil
}

func (c *content) end(err error) {
	c.err = err
	if c.decoder == nil {
		return
	}
	if closer, ok := c.decoder.(io.Closer); ok {
		_ = closer.Close()
	}
	<-slots
}

var decoders sync.Pool

// pooled is a decoder that Close makes available to other requests.
type pooled struct{ *zstd.Decoder }

// newZstd returns a decoder of zstd.
func newZstd(request io.Reader) (io.Reader, error) {
	decoder, ok := decoders.Get().(*zstd.Decoder)
	if !ok {
		decoder, _ = zstd.NewReader(nil, // fails for an option that is out of range only
			zstd.WithDecoderConcurrency(1), // decodes when read, without goroutines
			zstd.WithDecoderMaxWindow(maxWindow),
			zstd.WithDecodeBuffersBelow(0), // never the whole content at once
		)
	}
	if err := decoder.Reset(request); err != nil {
		return nil, err
	}
	return pooled{decoder}, nil
}

// Close makes the decoder available. It always returns nil.
func (p pooled) Close() error {
	if p.Reset(nil) == nil {
		decoders.Put(p.Decoder)
	}
	return nil
}

// compressor is a stock compressor that decompresses one request for each slot.
type compressor struct {
	encoding.Compressor
	open func(io.Reader) (io.Reader, error)
}

// gRPC uses the compressor that is registered last. configgrpc registers its own
// only where there is none, so these are used whatever the order.
func init() {
	for _, name := range []string{"gzip", "snappy", "zstd"} {
		stock := encoding.GetCompressor(name)
		c := compressor{Compressor: stock, open: stock.Decompress}
		if name == "zstd" {
			c.open = newZstd
		}
		encoding.RegisterCompressor(c)
	}
}

// Decompress returns the content of a message, which gRPC has received completely.
// gRPC closes it.
func (c compressor) Decompress(message io.Reader) (io.Reader, error) {
	return &content{request: message, open: c.open}, nil
}

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
