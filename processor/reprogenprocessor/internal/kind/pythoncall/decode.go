package pythoncall

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/failure"
	"github.com/otelcol-ml/otelcol-ml/processor/reprogenprocessor/internal/jsontree"
)

// Declared is the size and hash that a client sent with its payload.
type Declared struct {
	// Size is the payload's length in bytes, or negative if it was not sent.
	Size int64
	// SHA256 is the payload's hash in hex, or "" if it was not sent.
	SHA256 string
}

// known lists the members of a call.
var known = []string{
	"protocol_version", "min_supported_version", "library", "python_module",
	"function", "args", "kwargs", "idempotent", "session_id", "call_type",
}

// Decode reads a payload. named is the qualified name of the function that the
// span is about, or "": it completes a target that the payload does not name.
// Exactly one of the results is set.
func Decode(text string, declared Declared, named string) (*failure.Call, failure.Reason) {
	if len(text) > failure.MaxCallBytes {
		return nil, failure.TooLarge
	}
	if declared.Size >= 0 && declared.Size != int64(len(text)) {
		return nil, failure.Truncated
	}
	if declared.SHA256 != "" {
		sum := sha256.Sum256([]byte(text))
		if !strings.EqualFold(declared.SHA256, hex.EncodeToString(sum[:])) {
			return nil, failure.Truncated
		}
	}
	v, lossy, err := jsontree.Decode(text)
	if err != nil {
		return nil, failure.ReasonOf(err)
	}
	tree, ok := v.(jsontree.Object)
	if !ok {
		return nil, failure.Invalid
	}
	if !exactKeys(tree) {
		return nil, failure.Ambiguous
	}
	return callOf(tree, lossy, len(text), named)
}

// exactKeys reports whether each member that looks like a known one is
// spelled exactly so. Keys of arguments are the application's own: there, N
// and n are two.
func exactKeys(tree jsontree.Object) bool {
	seen := make(map[string]bool, len(tree))
	for _, m := range tree {
		key := strings.ToLower(strings.ToUpper(m.Key)) // as strings.EqualFold compares
		if seen[key] || m.Key != key && slices.Contains(known, key) {
			return false
		}
		seen[key] = true
	}
	return true
}

// callOf makes a call of its tree, and completes its target by a qualified name. Exactly
// one of its results is set.
func callOf(tree jsontree.Object, lossy bool, size int, named string) (*failure.Call, failure.Reason) {
	args, _ := tree.Lookup("args")
	_, isList := args.(jsontree.Array)
	kwargs, _ := tree.Lookup("kwargs")
	_, isMap := kwargs.(jsontree.Object)
	if args != nil && !isList || kwargs != nil && !isMap {
		return nil, failure.Invalid
	}
	call := &failure.Call{
		Tree: tree, Module: cmp.Or(tree.Text("python_module"), tree.Text("library")), Function: tree.Text("function"),
		Lossy: lossy, Weight: failure.WeightPerByte * size,
	}
	if call.Module == "" || call.Function == "" {
		if call = completed(call, named); call == nil {
			return nil, failure.NoTarget
		}
	}
	return call, ""
}

// completed returns the call with what it lacks of its target taken from a
// qualified name, or nil if the name has no module or contradicts the
// call.
func completed(c *failure.Call, named string) *failure.Call {
	var module, function string
	ok := false
	switch {
	case named == "":
	case c.Module != "":
		module = c.Module
		function, ok = strings.CutPrefix(named, c.Module+".")
	case c.Function != "":
		function = c.Function
		module, ok = strings.CutSuffix(named, "."+c.Function)
	default:
		module, function, ok = splitName(named)
	}
	if !ok || module == "" || function == "" {
		return nil
	}
	out := *c
	out.Module, out.Function = module, function
	out.Tree = append(jsontree.Of("python_module", module, "function", function), c.Tree.Without("python_module", "function")...)
	out.Weight += 4 * len(named)
	return &out
}

// splitName takes a qualified name apart where Python's naming says that the
// module ends: before the first class, or else before the last name. What is
// defined inside of a function has no name that leads to it.
func splitName(named string) (module, function string, ok bool) {
	if !utf8.ValidString(named) || strings.ContainsAny(named, "<>:/ ") {
		return "", "", false
	}
	at := strings.LastIndexByte(named, '.')
	if class := classAfterDot.FindStringIndex(named); class != nil {
		at = class[0]
	}
	if at < 0 {
		return "", "", false
	}
	return named[:at], named[at+1:], true
}

var classAfterDot = regexp.MustCompile(`\._*[A-Z]`)

const (
	maxURI = 2048
	// maxRemote is the size of a payload that a script fetches, in bytes.
	maxRemote = 1 << 20
)

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// ofURI makes a call of a payload that is stored elsewhere. Exactly one of its
// results is set.
func ofURI(uri string, declared Declared) (*failure.Call, failure.Reason) {
	sum := strings.ToLower(declared.SHA256)
	switch {
	case len(uri) > maxURI || !strings.Contains(uri, ":/"):
		return nil, failure.Invalid
	case !hash.MatchString(sum):
		return nil, failure.Unverified
	case declared.Size > maxRemote:
		return nil, failure.TooLarge
	}
	remote := &failure.Remote{URI: uri, SHA256: sum}
	if declared.Size >= 0 {
		remote.Size = &declared.Size
	}
	return &failure.Call{Remote: remote, Weight: 2 * len(uri)}, ""
}
