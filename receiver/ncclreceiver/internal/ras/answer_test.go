package ras

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/internal/testing/rastest"
)

func TestMissingCommas(t *testing.T) {
	for broken, want := range map[string]string{
		`{"a": 1 "b": 2}`:                  `{"a":1,"b":2}`,
		"{\"a\": -1\n\n\"b\": \"x\"}":      `{"a":-1,"b":"x"}`,
		`{"a": "x" "b": true "c": null}`:   `{"a":"x","b":true,"c":null}`,
		`[{"a": {} "b": []} {"c": 1}]`:     `[{"a":{},"b":[]},{"c":1}]`,
		`{"a": "\", \\" "b": "} {"}`:       `{"a":"\", \\","b":"} {"}`,
		`{"a": 1, "b": [1, 2], "c": {} }`:  `{"a":1,"b":[1,2],"c":{}}`,
		`[1 2 3]`:                          `[1,2,3]`,
		`{"missing": [{"x": 1} {"x": 2}]}`: `{"missing":[{"x":1},{"x":2}]}`,
	} {
		var fixed any
		require.NoError(t, json.Unmarshal(insertCommas([]byte(broken)), &fixed), broken)
		got, err := json.Marshal(fixed)
		require.NoError(t, err)
		assert.JSONEq(t, want, string(got))
	}
}

// What cannot be is left out, and the rest is read.
func TestImpossibleCommunicators(t *testing.T) {
	good := rastest.Communicator{Hash: "0x1", Size: 2, Ranks: []rastest.Rank{{Rank: 0}, {Rank: 1}}}
	for name, bad := range map[string]rastest.Communicator{
		"no size":              {Hash: "0x2"},
		"a huge size":          {Hash: "0x2", Size: 1 << 30},
		"more ranks than size": {Hash: "0x2", Size: 1, Ranks: []rastest.Rank{{Rank: 0}}, Missing: []rastest.Rank{{Rank: 0}}},
		"a rank twice":         {Hash: "0x2", Size: 4, Ranks: []rastest.Rank{{Rank: 1}}, Missing: []rastest.Rank{{Rank: 1}}},
		"a rank out of bounds": {Hash: "0x2", Size: 2, Ranks: []rastest.Rank{{Rank: 2}}},
		"a negative rank":      {Hash: "0x2", Size: 2, Ranks: []rastest.Rank{{Rank: -1}}},
		"a hash that is text":  {Hash: "<script>", Size: 2},
		"a hash without end":   {Hash: "0x" + strings.Repeat("a", 200), Size: 2},
		"the hash of another":  {Hash: "0x1", Size: 1},
	} {
		t.Run(name, func(t *testing.T) {
			answer, err := Parse([]byte(rastest.Text(good, bad)))
			require.NoError(t, err)
			require.Len(t, answer.Communicators, 1)
			assert.Equal(t, "0x1:0x2:0x3", answer.Communicators[0].Hash)
			assert.Equal(t, 1, answer.Dropped)
		})
	}
}

// What listens at the endpoint may be anyone's: an answer takes memory in proportion
// to its size, and no more.
func TestMemoryOfAnAnswer(t *testing.T) {
	for name, many := range map[string]string{"communicators": `{"communicators":[%]}`, "ranks": `{"communicators":[{"ranks":[%]}]}`} {
		for _, one := range []string{"{}", "0", "null", "[]"} {
			raw := []byte(strings.Replace(many, "%", one+strings.Repeat(","+one, 1<<19), 1))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := Parse(raw)
			runtime.ReadMemStats(&after)
			require.Error(t, err)
			assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(32*len(raw)), "%s of %s", name, one)
		}
	}
}

func TestWhatIsUnknown(t *testing.T) {
	answer, err := Parse([]byte(rastest.Text(rastest.Communicator{
		Hash: "0x1", Size: 2, Ranks: []rastest.Rank{{Rank: 1, Host: "unknown", PID: -1, Starting: true}},
	})))
	require.NoError(t, err)
	rank := answer.Communicators[0].Ranks[0]
	assert.False(t, rank.Host.IsValid())
	assert.Equal(t, -1, rank.PID)
	assert.False(t, rank.Running)
}

func FuzzParse(f *testing.F) {
	whole := rastest.Text(
		rastest.Communicator{Hash: "0x1", Size: 3, Ranks: []rastest.Rank{{Rank: 0, Host: "::1"}}, Missing: []rastest.Rank{{Rank: 1}, {Rank: 2}}},
		rastest.Communicator{Hash: "0x2", Size: 8})
	f.Add([]byte(whole))
	f.Add([]byte(rastest.WithoutCommas(whole)))
	f.Add([]byte(`{"communicators":[{"size":-1}]}`))
	f.Add([]byte(`{"a": "\`))
	f.Add([]byte(strings.Repeat("[", 20000)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if json.Valid(raw) {
			require.Equal(t, string(raw), string(insertCommas(raw)), "valid JSON stays as it is")
		}
		answer, err := Parse(raw)
		if err != nil {
			return
		}
		hashes := make(map[string]bool)
		for _, c := range answer.Communicators {
			require.False(t, hashes[c.Hash])
			hashes[c.Hash] = true
			require.LessOrEqual(t, len(c.Hash), maxHash)
			require.LessOrEqual(t, len(c.Ranks)+len(c.Missing), c.Size)
			for i := range c.Ranks {
				require.True(t, c.Ranks[i].Number >= 0 && c.Ranks[i].Number < c.Size)
				require.True(t, i == 0 || c.Ranks[i-1].Number < c.Ranks[i].Number)
			}
		}
	})
}
