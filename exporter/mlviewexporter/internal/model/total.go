package model

import "time"

// total is the sum and the largest of some numbers. Of rates, over is the longest time
// in seconds that one covers.
type total struct {
	sum, most, over float64
	n               int
}

func (t *total) add(v float64) {
	if t.n == 0 || v > t.most {
		t.most = v
	}
	t.sum += v
	t.n++
}

func (t *total) addRate(one *stream, now time.Time) {
	if rate, over, ok := one.rate(now); ok {
		t.add(rate)
		t.over = max(t.over, over)
	}
}

func (t total) largest() *float64 {
	if t.n == 0 {
		return nil
	}
	return finite(t.most)
}

func (t total) all() *float64 {
	if t.n == 0 {
		return nil
	}
	return finite(t.sum)
}

func (t total) mean() *float64 {
	if t.n == 0 {
		return nil
	}
	return finite(t.sum / float64(t.n))
}
