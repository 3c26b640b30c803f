package mlattr

const (
	// Overflow is the attribute, always true, of spans, points and streams of
	// which something lacks its own label because a limit was reached.
	Overflow = "otel.metric.overflow"
	// Other is the value of a label in place of one that a limit kept out, as the
	// semantic conventions spell it.
	Other = "_OTHER"
)
