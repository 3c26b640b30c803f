package sample

import (
	"github.com/otelcol-ml/otelcol-ml/internal/shared/lastused"
	"github.com/otelcol-ml/otelcol-ml/processor/mlsampleprocessor/internal/rule"
)

const (
	// maxConversations limits the conversations with a failure that are remembered.
	maxConversations = 4096
	// maxOperations limits the operations whose durations are compared.
	maxOperations = 2048
)

// fewTokens is added to the output tokens that a duration is divided by: the time
// to the first token counts as so many.
const fewTokens = 50

// calls are those that wait, and what others of their kind were like.
type calls struct {
	// queue is in the order in which calls are due.
	queue []*Unit
	// durations are those of calls by what they are like.
	durations *lastused.Map[uint64, *rule.Durations]
	// failing has the conversations with a failure, and until when.
	failing *lastused.Map[uint64, int64]
}

// reasonOf returns why a call is kept if it is decided now.
func (c *calls) reasonOf(u *Unit, cfg *Calls, now int64) Reason {
	why, chosen := u.why, u.conversation
	if chosen == 0 {
		chosen = rule.Hash(string(u.trace.id[:]))
	} else {
		until, fails := c.failing.Get(chosen)
		why.add(Conversation, fails && until >= now)
	}
	durations, duration := c.durationsOf(u)
	why.add(Slow, durations.Slow(duration, cfg.SlowQuantile, cfg.Slow))
	why.add(Systematic, rule.Conversation(chosen, uint64(cfg.OneIn)))
	return why.first()
}

// durationsOf returns the durations that a call is compared with, and its own.
func (c *calls) durationsOf(u *Unit) (*rule.Durations, float64) {
	key, duration := u.like, float64(u.end-u.start)/1e9
	if u.tokens > 0 {
		key, duration = ^key, duration/float64(u.tokens+fewTokens)
	}
	of, known := c.durations.Get(key)
	if !known {
		of = new(rule.Durations)
		c.durations.Put(key, of)
	}
	return of, duration
}
