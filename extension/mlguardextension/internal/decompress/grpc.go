package decompress

import (
	"io"

	_ "go.opentelemetry.io/collector/config/configgrpc" // registers the stock compressors before
	"google.golang.org/grpc/encoding"
)

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
