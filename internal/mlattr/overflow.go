package mlattr

const (
	// Other is the value of a label that replaces values beyond a limit, as the
	// semantic conventions spell it.
	Other = "_OTHER"
)
