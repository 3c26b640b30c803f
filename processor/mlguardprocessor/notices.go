package mlguardprocessor

import (
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// withheldText is the reason for a text that the section content has replaced. The
// other reasons are the limits of the section bounds and senders that are not trusted,
// each with a prefix.
const (
	withheldText = "content"
	limitPrefix  = "max_"
	senderPrefix = "from "
	otherSenders = "other senders"
)

// notices returns what was cut, by limit, how many texts were replaced, what was not
// believed, by sender, and what was not taken.
func (g *guard) notices() []shared.Notice {
	return append(g.out.notices(), g.left.Notices(func(reason string) (shared.Notice, bool) {
		if reason == withheldText {
			return shared.Notice{
				Kind: "content",
				What: "Text of spans, points and log records",
				Why:  "It is not on the allow-list, so its length or a hash is exported.",
				Fix:  g.id + ": {content: {keep: [<key of the attribute>]}}",
			}, true
		}
		if from, ok := strings.CutPrefix(reason, senderPrefix); ok {
			return shared.Notice{
				Kind: "sender",
				What: "Readings of GPUs and conclusions of collectors from " + from,
				Why:  "The sender is not authenticated, and trusted_senders does not list it.",
				Fix:  g.id + ": {trusted_senders: [<address, network or loopback>]}",
			}, true
		}
		return shared.Notice{
			Kind: "limit",
			What: "Values that were cut, or dropped",
			Why:  "They exceed " + reason + ".",
			Fix:  g.id + ": {bounds: {" + reason + ": <more>}}",
		}, true
	})...)
}
