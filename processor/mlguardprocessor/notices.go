package mlguardprocessor

import (
	"strings"
	"time"

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
	return append(g.outNotices(), g.left.Notices(func(reason string) (shared.Notice, bool) {
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

// outNotices returns a notice if there is no back end, or if something was not taken.
func (g *guard) outNotices() []shared.Notice {
	if g.leadsNowhere() {
		return []shared.Notice{{
			Key: "destination " + g.signal, Kind: "destination", What: "A back end that keeps " + g.signal,
			Why: "The collector has no address of one. This page shows the newest " + g.signal + "; metrics and problems are computed from all. In the shipped configurations, the collector's environment has the address.",
			Fix: "JAEGER_ENDPOINT=<host:port>",
		}}
	}
	u := &g.untaken
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.since.IsZero() {
		return nil
	}
	notice := shared.Notice{Key: "refused " + g.signal, Kind: "refused", Count: u.all}
	to := ""
	if g.drops() {
		notice.Key, notice.Kind, to = "dropped "+g.signal, "dropped", " for the back end"
		if g.out.Destination != nil {
			to += " " + *g.out.Destination
		}
	}
	if !u.lasts {
		notice.What = upper(g.signal) + to + " that were " + notice.Kind
		notice.Why = "The last time was from " + clock(u.since) + " to " + clock(u.until) + "."
		return []shared.Notice{notice}
	}
	notice.Since, notice.Count = u.since, u.items
	if g.drops() {
		notice.What = "Drops " + g.signal + to
		notice.Why = "It takes none, or its queue is full: the collector's log has the error. The last were dropped at " + clock(u.last) + ". Metrics, problems and this page are computed from all " + g.signal + "."
	} else {
		notice.What = "Refuses data: " + g.signal
		notice.Why = "A queue is full or memory is short: the collector's log has the error. The last were refused at " + clock(u.last) + ". Senders may send them again; what they give up is missing everywhere."
	}
	return []shared.Notice{notice}
}

func clock(t time.Time) string { return t.UTC().Format("2 Jan 15:04:05 UTC") }

// upper returns a word with a capital letter.
func upper(word string) string { return strings.ToUpper(word[:1]) + word[1:] }
