package payload

import (
	"regexp"
	"strings"
)

// Remote is a call whose payload lies somewhere else. The collector never
// looks there: the script does, and checks what it finds.
type Remote struct {
	// URI is where the client put the payload.
	URI string
	// SHA256 is the payload's hash in hex, lower case.
	SHA256 string
	// Size is the payload's length in bytes, or negative if it was not sent.
	Size int64
}

const maxURI = 2048

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// OfURI makes a call of a payload that lies somewhere else. Exactly one of its
// results is set.
func OfURI(uri string, declared Declared) (*Call, Reason) {
	sum := strings.ToLower(declared.SHA256)
	switch {
	case len(uri) > maxURI || !strings.Contains(uri, ":/"):
		return nil, Invalid
	case !hash.MatchString(sum):
		return nil, Unverified
	case declared.Size > MaxBytes:
		return nil, TooLarge
	}
	return &Call{Remote: &Remote{URI: uri, SHA256: sum, Size: declared.Size}, Weight: 2 * len(uri)}, ""
}
