package serving

import (
	"strings"
	"time"

	"github.com/otelcol-ml/otelcol-ml/connector/mlmetricsconnector/internal/shift"
)

const (
	// learned is the number of answers after which other models than those that
	// gave them are unusual.
	learned = 100
	// maxNames limits the names of models that answer for one. With more they are
	// a router's, and none is unusual.
	maxNames = 8
	// leastAnswers is the least number of answers of unusual models, and
	// unlikely the greatest probability that these are chance.
	leastAnswers, unlikely = 5, 1e-7
	// recentAnswers are looked at to see whether an unusual model still answers.
	recentAnswers = 100
	// usualAfter is how long another model answers until it is usual.
	usualAfter = 24 * time.Hour
)

// Answers has the models that answer for a requested one.
type Answers struct {
	names []answering
	// all is the number of answers that are usual.
	all int
	// Since is when the first answer of an unusual model came, zero without one;
	// of and others are the numbers of its answers and of all since then.
	Since      time.Time
	Of, Others int
	// usualSince is the number of answers since the last unusual one.
	usualSince  int
	Substituted bool
}

// answering is a model that answers.
type answering struct {
	name    string
	count   int
	unusual bool
}

// add adds an answer of a model; "" is unknown.
func (a *Answers) add(now time.Time, name string) {
	if name == "" || len(a.names) > maxNames {
		return
	}
	known := a.find(name)
	if known == nil {
		a.names = append(a.names, answering{name: strings.Clone(name), unusual: a.all >= learned})
		known = &a.names[len(a.names)-1]
	}
	known.count++
	if known.unusual && a.Since.IsZero() {
		a.Since, a.Of, a.Others, a.usualSince = now, 0, 0, 0
	}
	if a.Since.IsZero() {
		a.all++
		return
	}
	a.Others++
	a.usualSince++
	if known.unusual {
		a.Of++
		a.usualSince = 0
	}
	a.settle(now)
}

func (a *Answers) find(name string) *answering {
	for i := range a.names {
		if a.names[i].name == name {
			return &a.names[i]
		}
	}
	return nil
}

// settle concludes whether an unusual model answers, and makes it usual when it
// has for a day, or when so few of many answers are its own that it always may
// have been there.
func (a *Answers) settle(now time.Time) {
	if !a.Substituted && a.Of >= leastAnswers {
		a.Substituted = shift.Binomial(a.Of, a.Others, a.novelty()) < unlikely
	}
	chance := !a.Substituted && a.Others >= 10*recentAnswers
	if chance || now.Sub(a.Since) >= usualAfter {
		for i := range a.names {
			a.names[i].unusual = false
		}
	}
	if chance || now.Sub(a.Since) >= usualAfter || a.usualSince >= recentAnswers {
		a.all += a.Others
		a.Since, a.Substituted = time.Time{}, false
	}
}

// novelty returns the probability that an answer is of a model that never
// answered before: by Good and Turing, the share of models with one answer (Good,
// The Population Frequencies of Species, 1953), and at least one answer.
func (a *Answers) novelty() float64 {
	once := 1
	for i := range a.names {
		if n := &a.names[i]; !n.unusual && n.count == 1 {
			once++
		}
	}
	return float64(once) / float64(a.all+1)
}

// Most returns the usual and the unusual model that answer most, or "".
func (a *Answers) Most() (usual, unusual string) {
	var most [2]int
	for i := range a.names {
		n := &a.names[i]
		switch {
		case n.unusual && n.count > most[1]:
			unusual, most[1] = n.name, n.count
		case !n.unusual && n.count > most[0]:
			usual, most[0] = n.name, n.count
		}
	}
	return usual, unusual
}
