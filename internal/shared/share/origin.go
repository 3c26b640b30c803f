// Package share divides what is limited among the senders of telemetry. It
// relies on what a sender cannot invent for free: the connection or its
// authentication, and how long a service has been sending spans that succeed.
package share

import (
	"hash/maphash"

	"github.com/otelcol-ml/otelcol-ml/internal/shared/sender"
)

// seed keeps a sender from choosing names whose hashes are those of others.
var seed = maphash.MakeSeed()

// Sender identifies who sent a request. It is valid for the life of the
// process.
type Sender uint64

// Origin identifies a service of a sender. Two senders that use the same
// service.name are two origins.
type Origin struct {
	Sender  Sender
	Service uint64
}

// SenderOf returns the Sender with an id.
func SenderOf(id sender.ID) Sender { return Sender(maphash.Comparable(seed, id)) }

// OriginOf returns the origin of a service of a sender.
func OriginOf(from Sender, service string) Origin {
	return Origin{Sender: from, Service: maphash.String(seed, service)}
}
