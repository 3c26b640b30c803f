package sender

import "context"

type sizeKey struct{}

// WithSize notes in the context of a request of a client how many bytes it had when it
// arrived, decompressed.
func WithSize(ctx context.Context, bytes int) context.Context {
	return context.WithValue(ctx, sizeKey{}, bytes)
}

// Size returns how many bytes the request of a client had, or 0 if that is unknown, as it is
// after components that collect or divide requests.
func Size(ctx context.Context) int {
	bytes, _ := ctx.Value(sizeKey{}).(int)
	return bytes
}
