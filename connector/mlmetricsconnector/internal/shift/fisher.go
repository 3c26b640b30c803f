package shift

import "math"

// Counts are outcomes of a kind among all.
type Counts struct{ Of, All int }

// Add adds other counts.
func (c *Counts) Add(other Counts) { c.Of, c.All = c.Of+other.Of, c.All+other.All }

// Ratio returns the fraction, or 0 without observations.
func (c Counts) Ratio() float64 {
	if c.All == 0 {
		return 0
	}
	return float64(c.Of) / float64(c.All)
}

// Fisher returns the probability that recent has at least as many outcomes of the
// kind as it has, if its proportion is that of usual: the one-sided exact test of
// Fisher (The Design of Experiments, 1935). It holds for small counts.
func Fisher(recent, usual Counts) float64 {
	all, of := recent.All+usual.All, recent.Of+usual.Of
	if recent.Of <= 0 || recent.All == 0 {
		return 1
	}
	// The hypergeometric probability of exactly recent.Of, and from it the next.
	term := math.Exp(logChoose(recent.All, recent.Of) + logChoose(usual.All, usual.Of) - logChoose(all, of))
	sum := 0.0
	for i := recent.Of; i <= min(recent.All, of) && term > 0; i++ {
		sum += term
		left := of - i
		term *= float64(recent.All-i) * float64(left) / (float64(i+1) * float64(usual.All-left+1))
	}
	return min(sum, 1)
}

// Binomial returns the probability of at least k of n outcomes of the given
// probability.
func Binomial(k, n int, probability float64) float64 {
	if probability >= 1 {
		return 1
	}
	term := math.Exp(logChoose(n, k) + float64(k)*math.Log(probability) + float64(n-k)*math.Log1p(-probability))
	sum := 0.0
	for i := k; i <= n && term > 0; i++ {
		sum += term
		term *= float64(n-i) / float64(i+1) * probability / (1 - probability)
	}
	return min(sum, 1)
}

// logChoose returns the logarithm of the binomial coefficient.
func logChoose(n, k int) float64 {
	a, _ := math.Lgamma(float64(n + 1))
	b, _ := math.Lgamma(float64(k + 1))
	c, _ := math.Lgamma(float64(n - k + 1))
	return a - b - c
}
