package reprogenprocessor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// maxNamesOfPart is how many attributes a part of a call may be looked for in:
// each is looked for in every failed span.
const maxNamesOfPart = 16

// CallAttributesConfig names the span attributes in which clients send the
// call that failed: all of it in one (payload), or each part in an attribute of
// its own. Of the names of a part, the first one that a span has counts. A list
// replaces the default; an empty list leaves the part out.
type CallAttributesConfig struct {
	// Payload names the attributes with the whole call as JSON. Its size in
	// bytes is looked for under the name with ".size" behind it, and its
	// SHA-256 under that with ".sha256". Default: repro.payload,
	// snakepit.payload.
	Payload []string `mapstructure:"payload"`

	// Library names the attributes with the package. It stands for the module
	// where none is sent. Default: library, snakepit.library.
	Library []string `mapstructure:"library"`

	// PythonModule names the attributes with the module. Default:
	// python_module, snakepit.python_module.
	PythonModule []string `mapstructure:"python_module"`

	// Function names the attributes with the function in the module, or with
	// a class and its method. Default: function, snakepit.function.
	Function []string `mapstructure:"function"`

	// Args names the attributes with the list of arguments, as an array or as
	// JSON. A call in parts is made only of a span that has this or kwargs.
	// Default: args, snakepit.args.
	Args []string `mapstructure:"args"`

	// Kwargs names the attributes with the arguments by keyword, as a map or
	// as JSON. Default: kwargs, snakepit.kwargs.
	Kwargs []string `mapstructure:"kwargs"`

	// CallType names the attributes that say what is called: function, class,
	// module_attr or dynamic. Default: call_type, snakepit.call_type.
	CallType []string `mapstructure:"call_type"`
}

func defaultCallAttributes() CallAttributesConfig {
	both := func(name string) []string { return []string{name, "snakepit." + name} }
	return CallAttributesConfig{
		Payload:      []string{attrPayload, "snakepit.payload"},
		Library:      both("library"),
		PythonModule: both("python_module"),
		Function:     both("function"),
		Args:         both("args"),
		Kwargs:       both("kwargs"),
		CallType:     both("call_type"),
	}
}

// callPart is a part of a call with the names that it is looked for under.
type callPart struct {
	key   string
	names []string
}

func (c *CallAttributesConfig) parts() [7]callPart {
	return [...]callPart{
		{"payload", c.Payload}, {"library", c.Library}, {"python_module", c.PythonModule}, {"function", c.Function},
		{"args", c.Args}, {"kwargs", c.Kwargs}, {"call_type", c.CallType},
	}
}

// Validate reports names that no call can be read from.
func (c *CallAttributesConfig) Validate() error {
	var errs []error
	first := make(map[string]string)
	for _, p := range c.parts() {
		if len(p.names) > maxNamesOfPart {
			errs = append(errs, fmt.Errorf("%q has %d names: at most %d are looked for", p.key, len(p.names), maxNamesOfPart))
		}
		for i, name := range p.names {
			key := fmt.Sprintf("%s[%d]", p.key, i)
			switch known, ok := first[name]; {
			case name == "":
				errs = append(errs, fmt.Errorf("%q is empty: it must be the name of a span attribute", key))
			case strings.HasPrefix(name, "repro.artifact."):
				errs = append(errs, fmt.Errorf("%q is %q: repro_gen writes that one, so name the attribute that the client sends", key, name))
			case ok:
				errs = append(errs, fmt.Errorf("%q is %q, as %q is: an attribute can be one part only once", key, name, known))
			}
			first[name] = key
		}
	}
	return errors.Join(errs...)
}

// isPayload reports whether an attribute is the recorded call, or belongs to
// it: its size, its hash or its address.
func (c *CallAttributesConfig) isPayload(key string) bool {
	for _, name := range c.Payload {
		switch rest, ok := strings.CutPrefix(key, name); {
		case !ok:
		case rest == "", rest == sizeSuffix, rest == sha256Suffix, rest == uriSuffix:
			return true
		}
	}
	return key == attrPayload || strings.HasPrefix(key, attrPayload+".")
}

// isArguments reports whether an attribute has a call's arguments.
func (c *CallAttributesConfig) isArguments(key string) bool {
	return slices.Contains(c.Args, key) || slices.Contains(c.Kwargs, key)
}
