package shared

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestTally(t *testing.T) {
	var tally Tally
	describe := func(reason string) (Notice, bool) { return Notice{Kind: "limit"}, reason != "normal" }
	assert.Empty(t, tally.Notices(describe))
	tally.Add("rate_limited", 2)
	tally.Add("rate_limited", 3)
	tally.Add("normal", 1)
	assert.Equal(t, []Notice{{Key: "rate_limited", Kind: "limit", Count: 5}}, tally.Notices(describe))
}
