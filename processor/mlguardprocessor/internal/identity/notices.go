package identity

import (
	"fmt"
	"slices"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// notices returns for each kind how many spans and points had an identity that was
// not admitted.
func (f *Filter) notices() []shared.Notice {
	limits := f.cfg.Limits.of()
	return f.refused.Notices(func(name string) (shared.Notice, bool) {
		k := kind(slices.Index(kindNames[:], name))
		limit, bytes := limits[k], ""
		if f.tables[k].maxBytes > 0 {
			bytes = fmt.Sprintf(", or their text has %d bytes (scrape_bytes)", f.cfg.ScrapeBytes)
		}
		return shared.Notice{
			Kind: "limit",
			What: "New identities of the kind " + name,
			Why:  fmt.Sprintf("New names were not admitted, because the limit of %d is reached, or a quarter of it and they came only once%s; they are shown as _OTHER or dropped.", limit, bytes),
			Fix:  fmt.Sprintf("%s: {identities: {limits: {%s: %d}}}", f.id.Value.AsString(), name, min(2*limit, maxLimit)),
		}, true
	})
}
