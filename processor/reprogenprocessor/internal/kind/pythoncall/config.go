package pythoncall

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

// attrPayload has a whole call as JSON.
const attrPayload = "repro.payload"

// What belongs to a payload is named after it.
const (
	sizeSuffix   = ".size"
	sha256Suffix = ".sha256"
	uriSuffix    = ".uri"
)

// maxNames is how many attributes a part of a call may be looked for in: each is
// looked for in every failed span.
const maxNames = 16

// Config names the span attributes in which clients send the call that failed:
// the whole call in one (payload), or each part in an attribute of its own. The
// first attribute of a list that a span has counts. A list replaces the default;
// an empty list leaves the part out.
type Config struct {
	// Payload names the attributes with the whole call as JSON. An attribute of
	// the same name with ".size" appended has its size in bytes, and one with
	// ".sha256" its SHA-256. Default: repro.payload and those of the known clients.
	Payload []string `mapstructure:"payload"`

	// PythonModule names the attributes with the module. Default:
	// python_module and those of the known clients.
	PythonModule []string `mapstructure:"python_module"`

	// Function names the attributes with the function in the module, or with a
	// class and its method. Default: function and those of the
	// known clients.
	Function []string `mapstructure:"function"`

	// Args names the attributes with the list of arguments, as an array or as
	// JSON. A span without args and kwargs has no call in parts. Default: args and
	// those of the known clients.
	Args []string `mapstructure:"args"`

	// Kwargs names the attributes with the arguments by keyword, as a map or as
	// JSON. Default: kwargs and those of the known clients.
	Kwargs []string `mapstructure:"kwargs"`
}

var keys = mlattr.Calls()

// DefaultConfig returns the attributes of the known clients.
func DefaultConfig() Config {
	names := mlattr.Calls()
	return Config{
		Payload:      append([]string{attrPayload}, names.Payload...),
		PythonModule: names.Module,
		Function:     names.Function,
		Args:         names.Args,
		Kwargs:       names.Kwargs,
	}
}

// callPart is a part of a call with the attributes that it is looked for in.
type callPart struct {
	key   string
	names []string
}

func (c *Config) parts() [5]callPart {
	return [...]callPart{
		{"payload", c.Payload}, {"python_module", c.PythonModule}, {"function", c.Function},
		{"args", c.Args}, {"kwargs", c.Kwargs},
	}
}

// Validate returns an error for each name that no call can be read from.
func (c *Config) Validate() error {
	var errs []error
	first := make(map[string]string)
	for _, name := range slices.Concat(mlattr.Calls().Library, mlattr.Calls().Type) {
		first[name] = "the library or type of a call"
	}
	for _, p := range c.parts() {
		if len(p.names) > maxNames {
			errs = append(errs, fmt.Errorf("%q has %d names: at most %d are allowed", p.key, len(p.names), maxNames))
		}
		for i, name := range p.names {
			key := fmt.Sprintf("%s[%d]", p.key, i)
			switch known, ok := first[name]; {
			case name == "":
				errs = append(errs, fmt.Errorf("%q is empty: it must be the name of a span attribute", key))
			case strings.HasPrefix(name, "repro.artifact."):
				errs = append(errs, fmt.Errorf("%q is %q: repro_gen writes that one, so name the attribute that the client sends", key, name))
			case ok:
				errs = append(errs, fmt.Errorf("%q is %q, as %q is: an attribute can be one part only", key, name, known))
			}
			first[name] = key
		}
	}
	return errors.Join(errs...)
}

// attributes lists all attributes that a call is read from.
func (c *Config) attributes() (names []string) {
	for _, p := range c.parts() {
		for _, name := range p.names {
			names = append(names, name)
			if p.key == "payload" {
				names = append(names, name+sizeSuffix, name+sha256Suffix, name+uriSuffix)
			}
		}
	}
	return slices.Concat(names, keys.Library, keys.Type)
}

// isPayload reports whether an attribute is the recorded call, its size, hash or
// address, or its arguments as JSON.
func (c *Config) isPayload(key string, v pcommon.Value) bool {
	for _, name := range c.Payload {
		switch rest, ok := strings.CutPrefix(key, name); {
		case !ok:
		case rest == "", rest == sizeSuffix, rest == sha256Suffix, rest == uriSuffix:
			return true
		}
	}
	return key == attrPayload || strings.HasPrefix(key, attrPayload+".") ||
		v.Type() == pcommon.ValueTypeStr && (slices.Contains(c.Args, key) || slices.Contains(c.Kwargs, key))
}
