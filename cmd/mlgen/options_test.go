package main

import (
	"bytes"
	"flag"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/incident"
	"github.com/otelcol-ml/otelcol-ml/cmd/mlgen/scenario"
)

func TestDefaults(t *testing.T) {
	o, err := parse(nil, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, scenario.Names(), o.names)
	assert.Equal(t, "localhost:4317", o.endpoint)
	assert.Equal(t, "http://localhost:4318", o.httpEndpoint)
	assert.InDelta(t, 1, o.rate, 0)
	assert.Equal(t, 2, o.ranks)
	assert.Zero(t, o.steps("fx"), "no end")
	assert.Equal(t, "local", o.jobName)
	again, err := parse(nil, &bytes.Buffer{})
	require.NoError(t, err)
	assert.NotEqual(t, o.seed, again.seed, "without --seed each run is another")
}

// TestTransport shows which way each scenario goes.
func TestTransport(t *testing.T) {
	own := map[string]scenario.Protocol{
		"torchtel": scenario.HTTP, "fx": scenario.HTTP, "snakepit": scenario.HTTP,
		"tuft": scenario.GRPC, "taskweaver": scenario.GRPC,
	}
	for _, test := range []struct {
		name string
		args []string
		want func(string) scenario.Protocol
	}{
		{"nothing given", nil, func(s string) scenario.Protocol { return own[s] }},
		{"both given", []string{"--endpoint", "a:1", "--http-endpoint", "http://a:2"}, func(s string) scenario.Protocol { return own[s] }},
		{"gRPC given", []string{"--endpoint", "a:1"}, func(string) scenario.Protocol { return scenario.GRPC }},
		{"HTTP given", []string{"--http-endpoint", "http://a:2"}, func(string) scenario.Protocol { return scenario.HTTP }},
		{"gRPC asked for", []string{"--protocol", "grpc"}, func(string) scenario.Protocol { return scenario.GRPC }},
		{"HTTP asked for", []string{"--protocol", "http"}, func(string) scenario.Protocol { return scenario.HTTP }},
		{"an address for fx", []string{"--protocol", "grpc", "--fx-endpoint", "http://a:2/"}, func(s string) scenario.Protocol {
			if s == "fx" {
				return scenario.HTTP
			}
			return scenario.GRPC
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			o, err := parse(test.args, &bytes.Buffer{})
			require.NoError(t, err)
			for _, name := range scenario.Names() {
				assert.Equal(t, test.want(name), o.transport(name), name)
			}
		})
	}
}

func TestHTTPEndpointByEndpoint(t *testing.T) {
	o, err := parse([]string{"--protocol", "http", "--endpoint", "http://localhost:11000"}, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, "http://localhost:11000", o.httpEndpoint)
}

func TestScenarioList(t *testing.T) {
	o, err := parse([]string{"--scenario", "tuft, fx,tuft"}, &bytes.Buffer{})
	require.NoError(t, err)
	assert.Equal(t, []string{"fx", "tuft"}, o.names)
}

// TestIncidents shows what is sent: incidents and a fleet alone, unless scenarios
// are asked for, too.
func TestIncidents(t *testing.T) {
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"--incident", "all"}, incident.Names()},
		{[]string{"--incident", "slow-input,hang"}, []string{"hang", "slow-input"}},
		{[]string{"--incident", "hang", "--scenario", "fx"}, []string{"fx", "hang"}},
		{[]string{"--fleet", "runs=3,ranks=2,gpus=4"}, []string{"fleet"}},
	} {
		o, err := parse(append(test.args, "--http-endpoint", "http://a:2", "--endpoint", "a:1"), &bytes.Buffer{})
		require.NoError(t, err)
		assert.Equal(t, test.want, o.names)
		for _, name := range o.names {
			assert.Equal(t, name != "fx", o.transport(name) == scenario.GRPC, name)
			_, err := o.create(name)
			require.NoError(t, err, name)
		}
	}
}

func TestSteps(t *testing.T) {
	for _, test := range []struct {
		rate     float64
		duration time.Duration
		count    int64
		want     int64
	}{{1, 0, 0, 0}, {2, 10 * time.Second, 0, 20}, {0.1, time.Second, 0, 1}, {0.5, 5 * time.Second, 0, 3}, {2, 0, 7, 7}} {
		o := options{rate: test.rate, duration: test.duration, count: test.count}
		assert.Equal(t, test.want, o.steps("fx"))
	}
}

// TestBadFlags shows that an error names the flag, the value and what is allowed.
func TestBadFlags(t *testing.T) {
	for _, test := range []struct {
		args []string
		want []string
	}{
		{[]string{"--scenario", "torchtel,x"}, []string{`--scenario is "torchtel,x"`, "all or a comma-separated list of fx, snakepit, taskweaver, torchtel, tuft"}},
		{[]string{"--scenario", ""}, []string{`--scenario is ""`}},
		{[]string{"--incident", "flood"}, []string{`--incident is "flood"`, "all or a comma-separated list of bad-version, gpu-failed, hang, hang-at-start, held-idle, slow-input"}},
		{[]string{"--fleet", "big"}, []string{`--fleet: "big"`, "as in runs=500,ranks=8,gpus=512"}},
		{[]string{"--rate", "0"}, []string{"--rate is 0", "more than 0 and at most 10000"}},
		{[]string{"--rate", "NaN"}, []string{"--rate is NaN"}},
		{[]string{"--rate", "-1"}, []string{"--rate is -1"}},
		{[]string{"--rate", "fast"}, []string{`"fast"`, "-rate"}},
		{[]string{"--duration", "-1s"}, []string{"--duration is -1s", "0 (until interrupted) or more"}},
		{[]string{"--duration", "10"}, []string{`"10"`, "-duration"}},
		{[]string{"--steps", "-1"}, []string{"--steps is -1", "0 (no limit) or more"}},
		{[]string{"--steps", "5", "--duration", "1s"}, []string{"--steps is 5 and --duration is 1s", "one of the two"}},
		{[]string{"--seed", "1.5"}, []string{`--seed is "1.5"`, "whole number"}},
		{[]string{"--ranks", "0"}, []string{"--ranks is 0", "1 to 1024"}},
		{[]string{"--ranks", "1025"}, []string{"--ranks is 1025"}},
		{[]string{"--start", "yesterday"}, []string{`--start is "yesterday"`, "RFC 3339"}},
		{[]string{"--start", "0001-01-01T00:00:00Z"}, []string{"--start is", "between 1971 and 2200"}},
		{[]string{"--metrics-interval", "0s"}, []string{"--metrics-interval is 0s", "more than 0"}},
		{[]string{"--protocol", "udp"}, []string{`--protocol is "udp"`, "grpc, http or auto"}},
		{[]string{"--endpoint", "nonsense"}, []string{`--endpoint: endpoint "nonsense" is not host:port`}},
		{[]string{"--http-endpoint", "localhost:4318"}, []string{`--http-endpoint: endpoint "localhost:4318" is not an http:// or https:// URL`}},
		{[]string{"--protocol", "http", "--endpoint", "localhost:4318"}, []string{`--endpoint: endpoint "localhost:4318" is not an http://`}},
		{[]string{"--fx-endpoint", "localhost"}, []string{`--fx-endpoint: endpoint "localhost"`}},
		{[]string{"--nonsense"}, []string{"-nonsense"}},
		{[]string{"fx"}, []string{`unexpected argument "fx"`}},
		{[]string{"--rate", "0", "--ranks", "0"}, []string{"--rate is 0", "--ranks is 0"}},
	} {
		_, err := parse(test.args, &bytes.Buffer{})
		for _, want := range test.want {
			require.ErrorContains(t, err, want, "%v", test.args)
		}
	}
}

func TestHelp(t *testing.T) {
	var out bytes.Buffer
	_, err := parse([]string{"--help"}, &out)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, want := range []string{"simulated", "-scenario", "-sent", "-protocol"} {
		assert.Contains(t, out.String(), want)
	}
}

// TestReadme shows that the README speaks of flags and scenarios that exist.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var help bytes.Buffer
	_, err = parse([]string{"--help"}, &help)
	require.ErrorIs(t, err, flag.ErrHelp)
	for _, name := range regexp.MustCompile(`--[a-z][a-z-]*`).FindAllString(string(text), -1) {
		if name != "--help" {
			assert.Regexp(t, `(?m)^  `+name[1:]+`\b`, help.String())
		}
	}
	for _, name := range scenario.Names() {
		kind, _ := scenario.Find(name)
		transport := map[scenario.Protocol]string{scenario.GRPC: "gRPC", scenario.HTTP: "HTTP"}[kind.Protocol]
		assert.Contains(t, string(text), "| `"+name+"` | "+transport+" |")
	}
	for _, name := range incident.Names() {
		assert.Contains(t, string(text), "| `"+name+"` |")
	}
}
