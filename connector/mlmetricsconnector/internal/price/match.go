package price

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Limits of clauses.
const (
	maxClauses     = 500_000
	maxClauseDepth = 8
	maxPatterns    = 2000
	maxPattern     = 512
)

// clause is what names match: one of its fields is set. A nil clause matches none.
type clause struct {
	Equals     *string   `json:"equals"`
	StartsWith *string   `json:"starts_with"`
	EndsWith   *string   `json:"ends_with"`
	Contains   *string   `json:"contains"`
	Regex      *string   `json:"regex"`
	Or         []*clause `json:"or"`
	And        []*clause `json:"and"`

	pattern *regexp.Regexp
}

// match reports whether a name in lower case matches.
func (c *clause) match(name string) bool {
	switch {
	case c == nil:
		return false
	case c.Equals != nil:
		return name == *c.Equals
	case c.StartsWith != nil:
		return strings.HasPrefix(name, *c.StartsWith)
	case c.EndsWith != nil:
		return strings.HasSuffix(name, *c.EndsWith)
	case c.Contains != nil:
		return strings.Contains(name, *c.Contains)
	case c.pattern != nil:
		return c.pattern.MatchString(name)
	case len(c.Or) > 0:
		return slices.ContainsFunc(c.Or, func(one *clause) bool { return one.match(name) })
	default:
		return !slices.ContainsFunc(c.And, func(one *clause) bool { return !one.match(name) })
	}
}

// compiler counts what it compiles.
type compiler struct{ clauses, patterns int }

// clause compiles a clause, so that it matches names in lower case. A regular expression is
// used once for each name of a model and never for a span.
func (c *compiler) clause(of *clause, depth int) (err error) {
	if of == nil {
		return nil
	}
	if c.clauses++; c.clauses > maxClauses || depth > maxClauseDepth {
		return fmt.Errorf("more than %d clauses, or %d in one another", maxClauses, maxClauseDepth)
	}
	for _, text := range [...]*string{of.Equals, of.StartsWith, of.EndsWith, of.Contains} {
		if text != nil {
			*text = strings.ToLower(*text)
			return nil
		}
	}
	switch {
	case of.Regex != nil:
		if c.patterns++; c.patterns > maxPatterns || len(*of.Regex) > maxPattern {
			return fmt.Errorf("more than %d regular expressions, or one of more than %d bytes", maxPatterns, maxPattern)
		}
		of.pattern, err = regexp.Compile(*of.Regex)
	case len(of.Or)+len(of.And) == 0:
		return errors.New("it is none of equals, starts_with, ends_with, contains, regex, or, and")
	}
	for _, one := range slices.Concat(of.Or, of.And) {
		if err == nil {
			err = c.clause(one, depth+1)
		}
	}
	return err
}
