package growth

import (
	"fmt"
	"os"
	"strings"
)

// The marks of the tables in docs/evidence/scale.md.
const (
	beginCosts  = "<!-- Written by make bench-scale UPDATE=1. -->\n"
	beginGrowth = "<!-- Computed from the table before by make bench-scale UPDATE=1. -->\n"
	end         = "<!-- End of what is written. -->\n"
)

// between returns what is before a mark, up to the end mark, and from there on.
func between(text, begin string) (before, inside, after string, err error) {
	before, rest, found := strings.Cut(text, begin)
	inside, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		return "", "", "", fmt.Errorf("the page has no %q with an end", strings.TrimSpace(begin))
	}
	return before + begin, inside, end + after, nil
}

// Write puts the costs, and what follows from them, into a page.
func Write(path string, c Costs) error {
	text, err := os.ReadFile(path) //nolint:gosec // the page of the repository
	if err != nil {
		return err
	}
	before, _, after, err := between(string(text), beginCosts)
	if err != nil {
		return err
	}
	// The page has rounded numbers; the second table follows from those.
	rounded, err := ParseCosts(c.Table())
	if err != nil {
		return err
	}
	page := before + "\n" + c.Table() + "\n" + after
	before, _, after, err = between(page, beginGrowth)
	if err != nil {
		return err
	}
	page = before + "\n" + Computed(rounded) + "\n" + after
	return os.WriteFile(path, []byte(page), 0o600) //nolint:gosec // the page of the repository
}

// Computed returns what follows from the costs: the table of fleets, and that of
// limits.
func Computed(c Costs) string { return Table(c) + "\n" + Limits(c) }

// Tables returns the costs of a page, and what is computed from them.
func Tables(path string) (costs Costs, computed string, err error) {
	text, err := os.ReadFile(path) //nolint:gosec // the page of the repository
	if err != nil {
		return costs, "", err
	}
	_, measured, _, err := between(string(text), beginCosts)
	if err != nil {
		return costs, "", err
	}
	if costs, err = ParseCosts(measured); err != nil {
		return costs, "", err
	}
	_, computed, _, err = between(string(text), beginGrowth)
	return costs, strings.TrimSpace(computed) + "\n", err
}
