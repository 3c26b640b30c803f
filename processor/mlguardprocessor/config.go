package mlguardprocessor

import (
	"errors"
	"time"

	"go.opentelemetry.io/collector/config/configoptional"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/bounds"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/identity"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/trust"
	"github.com/otelcol-ml/otelcol-ml/processor/mlguardprocessor/internal/withhold"
)

// Config is the configuration of the ml_guard processor.
type Config struct {
	// Bounds limits nesting, size and number of values. It always applies,
	// except to traces if only identities is configured.
	Bounds bounds.Config `mapstructure:"bounds"`
	// TrustedSenders lists the senders whose readings of GPUs and conclusions are
	// believed, beside the collector itself and clients that the receiver's
	// authenticator names: IP addresses, networks such as 10.0.0.0/8, "loopback", or
	// "any" where only collectors can send. What others send under the names of this
	// project's metrics and log records is dropped and counted. It applies without
	// identities, content and out, which belong to a later position. The default is none.
	TrustedSenders []string `mapstructure:"trusted_senders"`
	// RetryAfter is the delay after which a client may send a temporarily
	// refused request again. It is added to errors that state no delay, as
	// gRPC's RetryInfo and HTTP's Retry-After. It must be whole seconds up to
	// 1h. The default is 5s; 0 adds no delay.
	RetryAfter time.Duration `mapstructure:"retry_after"`
	// Identities limits the identities that become labels. It applies if the
	// section is present.
	Identities configoptional.Optional[identity.Config] `mapstructure:"identities"`
	// Content exports only text that an allow-list permits. It applies if the
	// section is present.
	Content configoptional.Optional[withhold.Config] `mapstructure:"content"`
	// Out is for the last processor before an exporter to a back end. It applies if
	// the section is present.
	Out configoptional.Optional[OutConfig] `mapstructure:"out"`
}

// Values of OutConfig.WhenRefused.
const (
	Drop   = "drop"
	Refuse = "refuse"
)

// OutConfig is the section out of ml_guard's configuration.
type OutConfig struct {
	// Destination is the address that the exporter sends to, which the live page
	// names. If the key is present and empty, nothing is passed on: so the variable
	// that has the address also says whether there is a back end at all. The default
	// is that the key is absent: everything is passed on, and the page names no address.
	Destination *string `mapstructure:"destination"`
	// WhenRefused says what happens to data that the components after it refuse, such
	// as an exporter whose queue is full. "drop", the default, drops and counts it:
	// the sender is told that it was taken, and what is computed from it does not
	// suffer. "refuse" refuses it, so that the sender may send it again.
	WhenRefused string `mapstructure:"when_refused"`
	// MaxSize is the size, in bytes of OTLP, above which a request of traces is passed on
	// in parts. A single span is never divided. The default is 4190000, because a gRPC
	// server refuses requests above 4 MiB by default; 0 passes each request on as it is.
	MaxSize int `mapstructure:"max_size"`
}

// Validate returns an error that names the key with an invalid value.
func (c *OutConfig) Validate() error {
	return errors.Join(
		shared.Check(c.WhenRefused == Drop || c.WhenRefused == Refuse, `"when_refused" is %q; it must be %q or %q`, c.WhenRefused, Drop, Refuse),
		shared.Check(c.MaxSize >= 0, `"max_size" is %d; it must be 0 or a number of bytes`, c.MaxSize))
}

// Validate returns an error that names the key with an invalid value. The
// sections validate themselves.
func (c *Config) Validate() error {
	return errors.Join(
		shared.Check(c.RetryAfter >= 0 && c.RetryAfter <= time.Hour && c.RetryAfter%time.Second == 0,
			`"retry_after" is %s; it must be whole seconds between 0s and 1h`, c.RetryAfter),
		shared.Check(len(c.TrustedSenders) == 0 || c.isFirst(),
			`"trusted_senders" is set beside identities, content or out; it belongs to the first ml_guard of a pipeline, which has none of them`),
		trust.Validate(c.TrustedSenders))
}

// isFirst reports whether the processor is meant for the first position of a pipeline,
// where the sender of a request is known.
func (c *Config) isFirst() bool {
	return !c.Identities.HasValue() && !c.Content.HasValue() && !c.Out.HasValue()
}
