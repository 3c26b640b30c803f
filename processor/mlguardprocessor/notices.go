package mlguardprocessor

import "github.com/otelcol-ml/otelcol-ml/internal/shared"

// withheldText is the reason for a text that the section content has replaced. The
// other reasons are the limits of the section bounds, with this prefix.
const (
	withheldText = "content"
	limitPrefix  = "max_"
)

// notices returns what was cut, by limit, and how many texts were replaced.
func (g *guard) notices() []shared.Notice {
	return g.left.Notices(func(reason string) (shared.Notice, bool) {
		if reason == withheldText {
			return shared.Notice{
				Kind: "content",
				What: "Text of spans, points and log records",
				Why:  "It is not on the allow-list, so its length or a hash is exported.",
				Fix:  g.id + ": {content: {keep: [<key of the attribute>]}}",
			}, true
		}
		return shared.Notice{
			Kind: "limit",
			What: "Values that were cut, or dropped",
			Why:  "They exceed " + reason + ".",
			Fix:  g.id + ": {bounds: {" + reason + ": <more>}}",
		}, true
	})
}
