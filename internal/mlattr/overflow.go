package mlattr

const (
	// Overflow is an attribute of spans, points and streams that lack a label
	// of their own because a limit was reached. It is always true.
	Overflow = "otel.metric.overflow"
	// Other is the value of a label that replaces values beyond a limit, as the
	// semantic conventions spell it.
	Other = "_OTHER"
)
