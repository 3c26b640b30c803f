package price

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Limits of clauses.
const (
	maxClauses     = 500_000
	maxClauseDepth = 8
	maxPatterns    = 2000
	maxPattern     = 512
)

// rawClause is the form of a clause in the file: one of its fields is set.
type rawClause struct {
	Equals     *string      `json:"equals"`
	StartsWith *string      `json:"starts_with"`
	EndsWith   *string      `json:"ends_with"`
	Contains   *string      `json:"contains"`
	Regex      *string      `json:"regex"`
	Or         []*rawClause `json:"or"`
	And        []*rawClause `json:"and"`
}

// clause is what names match. A nil clause matches none.
type clause struct {
	text string
	// matches compares a name in lower case with text. It is nil for a clause of
	// several.
	matches func(name, text string) bool
	// One clause of any, or each clause of all, has to match.
	any, all []*clause
}

// match reports whether a name in lower case matches.
func (c *clause) match(name string) bool {
	switch {
	case c == nil:
		return false
	case c.matches != nil:
		return c.matches(name, c.text)
	case c.any != nil:
		for _, one := range c.any {
			if one.match(name) {
				return true
			}
		}
		return false
	default:
		for _, one := range c.all {
			if !one.match(name) {
				return false
			}
		}
		return true
	}
}

// compiler counts what it compiles.
type compiler struct{ clauses, patterns int }

// clause compiles a clause. It returns nil for nil.
func (c *compiler) clause(raw *rawClause) (*clause, error) { return c.nested(raw, 1) }

func (c *compiler) nested(raw *rawClause, depth int) (*clause, error) {
	if raw == nil {
		return nil, nil
	}
	if c.clauses++; c.clauses > maxClauses || depth > maxClauseDepth {
		return nil, fmt.Errorf("more than %d clauses, or %d in one another", maxClauses, maxClauseDepth)
	}
	equal := func(name, text string) bool { return name == text }
	for _, one := range [...]struct {
		text    *string
		matches func(name, text string) bool
	}{
		{raw.Equals, equal}, {raw.StartsWith, strings.HasPrefix}, {raw.EndsWith, strings.HasSuffix}, {raw.Contains, strings.Contains},
	} {
		if one.text != nil {
			return &clause{text: strings.ToLower(*one.text), matches: one.matches}, nil
		}
	}
	switch {
	case raw.Regex != nil:
		return c.pattern(*raw.Regex)
	case len(raw.Or) > 0:
		list, err := c.several(raw.Or, depth)
		return &clause{any: list}, err
	case len(raw.And) > 0:
		list, err := c.several(raw.And, depth)
		return &clause{all: list}, err
	default:
		return nil, errors.New("it is none of equals, starts_with, ends_with, contains, regex, or, and")
	}
}

func (c *compiler) several(raw []*rawClause, depth int) ([]*clause, error) {
	list := make([]*clause, 0, len(raw))
	for _, one := range raw {
		compiled, err := c.nested(one, depth+1)
		if err != nil {
			return nil, err
		}
		list = append(list, compiled)
	}
	return list, nil
}

// pattern compiles a regular expression, which is used once for each name of a
// model and never for a span.
func (c *compiler) pattern(text string) (*clause, error) {
	if c.patterns++; c.patterns > maxPatterns || len(text) > maxPattern {
		return nil, fmt.Errorf("more than %d regular expressions, or one of more than %d bytes", maxPatterns, maxPattern)
	}
	compiled, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &clause{matches: func(name, _ string) bool { return compiled.MatchString(name) }}, nil
}
