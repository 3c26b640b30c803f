package pythoncall

import (
	"regexp"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/payload"
)

const (
	maxURI = 2048
	// maxRemote is the size of a payload that a script fetches, in bytes.
	maxRemote = 1 << 20
)

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ofURI makes a call of a payload that is stored elsewhere. Exactly one of its
// results is set.
func ofURI(uri string, declared Declared) (*payload.Call, payload.Reason) {
	sum := strings.ToLower(declared.SHA256)
	switch {
	case len(uri) > maxURI || !strings.Contains(uri, ":/"):
		return nil, payload.Invalid
	case !hash.MatchString(sum):
		return nil, payload.Unverified
	case declared.Size > maxRemote:
		return nil, payload.TooLarge
	}
	return &payload.Call{Remote: &payload.Remote{URI: uri, SHA256: sum, Size: jsontree.Known(declared.Size)}, Weight: 2 * len(uri)}, ""
}
