// Package format reads the lines that training programs print. What a program prints is
// data: a file of the folder formats has the rules of one program, and the lines that they
// were made from.
package format

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/shared"
)

// Format is what one training program prints.
type Format struct {
	// Name identifies the format, such as megatron. It must be unique.
	Name string `mapstructure:"name"`
	// Title is the program's name in documentation, the name by default.
	Title string `mapstructure:"title"`
	// Page is where the program is found. It is documentation only.
	Page string `mapstructure:"page"`
	// Prints and Lacks say what the program prints and what it does not. They are
	// documentation only.
	Prints string `mapstructure:"prints"`
	Lacks  string `mapstructure:"lacks"`
	// Lines are the rules, in the order in which they are tried. Of several rules with the
	// same meaning, the first that matches a line counts.
	Lines []Rule `mapstructure:"lines"`
	// Examples are lines that the program printed. They must be read as they say.
	Examples []Example `mapstructure:"examples"`
}

// Rule reads one kind of line.
type Rule struct {
	// Is is what the line says: see the Kind values.
	Is string `mapstructure:"is"`
	// Has is a text that every such line contains. Other lines cost no more than the
	// search for it.
	Has string `mapstructure:"has"`
	// Pattern is a regular expression in Go's syntax, which is found anywhere in the line.
	// Its named groups are values; see Values. Without a pattern, the text Has is enough.
	Pattern string `mapstructure:"pattern"`
	// Fields are further values, each with the text before its number. They may be missing
	// and come in any order after the beginning of the match.
	Fields map[string]string `mapstructure:"fields"`
	// Block makes the line the first of several: those that follow and begin with this text
	// have further Fields.
	Block string `mapstructure:"block"`
	// Scope says what the rates of tokens and samples cover: device for one GPU, global for
	// all, "" for unknown.
	Scope string `mapstructure:"scope"`
	// FromZero is true where the first step has the number 0.
	FromZero bool `mapstructure:"from_zero"`
	// FromNext is true where the number is that of the next step.
	FromNext bool `mapstructure:"from_next"`
	// Redrawn is true for bars that are printed again with newer values of the same step.
	// The last print counts.
	Redrawn bool `mapstructure:"redrawn"`
	// EpochFromZero is true where the first epoch has the number 0.
	EpochFromZero bool `mapstructure:"epoch_from_zero"`
	// InEpoch is true where steps are numbered anew in each epoch of total steps.
	InEpoch bool `mapstructure:"in_epoch"`
	// ByTime is true where numbers of steps may be numbers of samples: the steps since the
	// line before are counted by their stated duration.
	ByTime bool `mapstructure:"by_time"`
	// MissingLoss is nan where the program leaves out a loss that is NaN, "" elsewhere.
	MissingLoss string `mapstructure:"missing_loss"`

	format  *Format
	kind    Kind
	pattern *regexp.Regexp
	groups  []string // the names of the values by index of the group, "" for none
	labels  []label
}

// label is the name of a value with the text before it.
type label struct{ text, name string }

// Example is what a program printed.
type Example struct {
	// Of is the program with its version, and Command what it ran as, or the place in its
	// source.
	Of      string `mapstructure:"of"`
	Command string `mapstructure:"command"`
	// Tried is true where the program was run, false where the lines are from its source.
	Tried bool `mapstructure:"tried"`
	// Text are the lines.
	Text string `mapstructure:"text"`
	// Reads is what they say, in the order of the lines, as Reading.String has it.
	Reads []string `mapstructure:"reads"`
}

// Kind is what a line says. values.yaml has the kinds and the values.
type Kind uint8

// String returns the word for the kind in a format.
func (k Kind) String() string { return kindNames[k] }

// Value is a number that a line has. Times are in seconds.
type Value uint8

// unit is a value of a name in formats, with the factor to the value's unit. A negative
// factor stands for a rate whose inverse is the value.
type unit struct {
	value  Value
	factor float64
}

// Values returns the names of values that a format may have, sorted.
func Values() []string { return slices.Sorted(maps.Keys(valueNames)) }

// scopes are what Rule.Scope may be.
var scopes = []string{"", "device", "global"}

// Has reports whether the format has lines of a kind.
func (f *Format) Has(kind Kind) bool {
	return slices.ContainsFunc(f.Lines, func(r Rule) bool { return r.Is == kindNames[kind] })
}

// maxPattern limits a pattern, whose cost for each line grows with it.
const maxPattern = 1024

// compile prepares the rules and tries the examples. key is that of the format.
func (f *Format) compile(key string) error {
	if f.Name == "" {
		return fmt.Errorf("%s::name: must not be empty", key)
	}
	if len(f.Lines) == 0 {
		return fmt.Errorf("%s::lines: must have at least one rule", key)
	}
	for i := range f.Lines {
		if err := f.Lines[i].compile(f); err != nil {
			return fmt.Errorf("%s::lines::%d::%w", key, i, err)
		}
	}
	return f.check(key)
}

func (r *Rule) compile(f *Format) error {
	r.format = f
	at := slices.Index(kindNames[:], r.Is)
	if at <= 0 {
		return fmt.Errorf("is: %q is none of %s", r.Is, strings.Join(kindNames[1:], ", "))
	}
	r.kind = Kind(at) // #nosec G115 -- an index of a short list
	switch {
	case len(r.Has) < 2:
		return fmt.Errorf("has: %q must have at least 2 bytes", r.Has)
	case !slices.Contains(scopes, r.Scope):
		return fmt.Errorf("scope: %q is none of device, global", r.Scope)
	case r.MissingLoss != "" && r.MissingLoss != "nan":
		return fmt.Errorf("missing_loss: %q is not nan", r.MissingLoss)
	case len(r.Pattern) > maxPattern:
		return fmt.Errorf("pattern: has %d bytes, at most %d are allowed", len(r.Pattern), maxPattern)
	}
	if r.Pattern != "" {
		var err error
		if r.pattern, err = regexp.Compile(r.Pattern); err != nil {
			return fmt.Errorf("pattern: %w", err)
		}
		r.groups = r.pattern.SubexpNames()
	}
	for _, name := range r.groups {
		if _, ok := valueNames[name]; !ok && name != "" {
			return fmt.Errorf("pattern: %q is none of %s", name, strings.Join(Values(), ", "))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		if _, ok := valueNames[name]; !ok {
			return fmt.Errorf("fields: %q is none of %s", name, strings.Join(Values(), ", "))
		}
		if r.Fields[name] == "" {
			return fmt.Errorf("fields::%s: must not be empty", name)
		}
		r.labels = append(r.labels, label{r.Fields[name], name})
	}
	numbered := slices.Contains(r.groups, "step") || r.Fields["step"] != ""
	return shared.Check(numbered || r.kind != Step && r.kind != Bar, "pattern: %q has no group step, which a line of a %s needs", r.Pattern, r.Is)
}

// Kind is what such lines say.
func (r *Rule) Kind() Kind { return r.kind }

// Format is the format that has the rule.
func (r *Rule) Format() *Format { return r.format }

// Reading is what a line says, by the rule that read it.
type Reading struct {
	*Rule

	has  uint32
	list [values]float64
}

// Get returns a value, and whether the line has it.
func (r *Reading) Get(v Value) (number float64, ok bool) { return r.list[v], r.has&(1<<v) != 0 }

// Or returns a value, or another one if the line does not have it.
func (r *Reading) Or(v Value, other float64) float64 {
	if number, ok := r.Get(v); ok {
		return number
	}
	return other
}

// Set adds a value that the line does not have.
func (r *Reading) Set(v Value, number float64) {
	if r.has&(1<<v) == 0 {
		r.list[v] = number
		r.has |= 1 << v
	}
}

// Merge adds the values of another Reading that this one lacks.
func (r *Reading) Merge(other *Reading) {
	for v := range values {
		if number, ok := other.Get(v); ok {
			r.Set(v, number)
		}
	}
}

// String returns the kind and the values, such as "step step=10 loss=7.1".
func (r *Reading) String() string {
	var text strings.Builder
	text.WriteString(r.Kind().String())
	for v := range values {
		if number, ok := r.Get(v); ok {
			fmt.Fprintf(&text, " %s=%.13g", shown[v], number)
		}
	}
	return text.String()
}

// read adds the value with a name to what the line says.
func (r *Reading) read(name string, text string) {
	number, ok := Number(text)
	if !ok {
		return
	}
	of := valueNames[name]
	switch {
	case of.factor > 0:
		number *= of.factor
	case number > 0:
		number = 1 / number
	default:
		return
	}
	if of.value != Loss && of.value != ValLoss && of.value != GradNorm && (math.IsNaN(number) || math.IsInf(number, 0)) {
		return
	}
	r.Set(of.value, number)
}

// maxDigits limits the text of a number.
const maxDigits = 40

// Number reads a number: with commas between thousands, as a time such as 1:02:03, or not
// finite. It returns false for anything else.
func Number(text string) (number float64, ok bool) {
	text = strings.TrimSpace(text)
	if text == "" || len(text) > maxDigits {
		return 0, false
	}
	if strings.Contains(text, ":") {
		for part := range strings.SplitSeq(text, ":") {
			n, err := strconv.ParseFloat(part, 64)
			if err != nil || n < 0 || math.IsNaN(n) || math.IsInf(n, 0) {
				return 0, false
			}
			number = number*60 + n
		}
		return number, true
	}
	if text[0] != ',' {
		text = strings.ReplaceAll(text, ",", "")
	}
	if strings.EqualFold(strings.TrimLeft(text, "+-"), "nan") {
		return math.NaN(), true
	}
	number, err := strconv.ParseFloat(text, 64)
	return number, err == nil && !strings.ContainsAny(text, "xX_")
}

// leading returns the text of the number that a text begins with, after blanks, a quote or
// a bracket.
func leading(text string) (number string, ok bool) {
	text = strings.TrimLeft(text[:min(len(text), 2*maxDigits)], " \t")
	text = strings.TrimLeft(text, `'"[(`)
	end := 0
	for end < len(text) && (isWord(text[end]) || strings.IndexByte("+-.,:", text[end]) >= 0) {
		end++
	}
	text = strings.TrimRight(text[:end], ".,:")
	if _, ok := Number(text); ok {
		return text, true
	}
	// A number with its unit.
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	_, ok = Number(digits)
	return digits, ok
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
