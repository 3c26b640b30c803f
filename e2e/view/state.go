package view

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

// State is the part of GET /api/v1/state that the tests read.
type State struct {
	Time      time.Time `json:"time"`
	Collector struct {
		Simulated      bool           `json:"simulated"`
		GPUs           map[string]int `json:"gpus"`
		Hidden         map[string]int `json:"hidden"`
		HostsReporting int            `json:"hosts_reporting"`
	} `json:"collector"`
	Needs  []Need  `json:"needs"`
	Runs   []Run   `json:"runs"`
	GPUs   []GPU   `json:"gpus"`
	Calls  []Call  `json:"calls"`
	Models []Model `json:"models"`
	Pools  []Pool  `json:"pools"`
}

// Need is a problem.
type Need struct {
	Key      string    `json:"key"`
	Cause    string    `json:"cause"`
	Kind     string    `json:"kind"`
	Since    time.Time `json:"since"`
	RunID    string    `json:"run_id"`
	Service  string    `json:"service"`
	Job      string    `json:"job"`
	Owner    string    `json:"owner"`
	GPUs     []string  `json:"gpus"`
	Subject  string    `json:"subject"`
	Value    *float64  `json:"value"`
	Usual    *float64  `json:"usual"`
	Evidence []string  `json:"evidence"`
	Before   []struct {
		Kind string `json:"kind"`
		To   string `json:"to"`
		Text string `json:"text"`
	} `json:"before"`
	Next    string `json:"next"`
	Command string `json:"command"`
}

// Run is a row of the runs.
type Run struct {
	ID             string     `json:"id"`
	Service        string     `json:"service"`
	Team           string     `json:"team"`
	State          string     `json:"state"`
	StateSince     *time.Time `json:"state_since"`
	Steps          *float64   `json:"steps"`
	StepTime       *float64   `json:"step_time"`
	StepTimeUsual  *float64   `json:"step_time_usual"`
	Tokens         *float64   `json:"tokens"`
	Samples        *float64   `json:"samples"`
	Loss           *float64   `json:"loss"`
	LossScope      string     `json:"loss_scope"`
	LearningRate   *float64   `json:"learning_rate"`
	Epoch          *float64   `json:"epoch"`
	Goodput        *float64   `json:"goodput"`
	Bound          string     `json:"bound"`
	GPUs           *float64   `json:"gpus"`
	GPUUtilization *float64   `json:"gpu_utilization"`
	Attempts       *float64   `json:"attempts"`
	Errors         *float64   `json:"errors"`
	Simulated      bool       `json:"simulated"`
}

// GPU is a row of the GPUs.
type GPU struct {
	Key            string   `json:"key"`
	ID             string   `json:"id"`
	Index          string   `json:"index"`
	Host           string   `json:"host"`
	Simulated      bool     `json:"simulated"`
	Activity       string   `json:"activity"`
	LastActivity   string   `json:"last_activity"`
	Utilization    *float64 `json:"utilization"`
	MemoryUsed     *float64 `json:"memory_used"`
	MemoryLimit    *float64 `json:"memory_limit"`
	MemoryReserved *float64 `json:"memory_reserved"`
	Power          *float64 `json:"power"`
	PowerLimit     *float64 `json:"power_limit"`
	Temperature    *float64 `json:"temperature"`
	Health         string   `json:"health"`
	HeldIdle       bool     `json:"held_idle"`
}

// Model is a row of the models.
type Model struct {
	Service      string             `json:"service"`
	Model        string             `json:"model"`
	Role         string             `json:"role"`
	Side         string             `json:"side"`
	Requests     *float64           `json:"requests"`
	InputTokens  *float64           `json:"input_tokens"`
	OutputTokens *float64           `json:"output_tokens"`
	Errors       map[string]float64 `json:"errors"`
	ErrorRatio   *float64           `json:"error_ratio"`
	Bound        map[string]float64 `json:"bound"`
}

// Call is a row of the calls.
type Call struct {
	Service  string             `json:"service"`
	Function string             `json:"function"`
	Bound    map[string]float64 `json:"bound"`
}

// Pool is a row of the pools of workers.
type Pool struct {
	Service  string   `json:"service"`
	Pool     string   `json:"pool"`
	Instance string   `json:"instance"`
	Size     *float64 `json:"size"`
	Busy     *float64 `json:"busy"`
	Idle     *float64 `json:"idle"`
	Crashes  *float64 `json:"crashes"`
	Breakers *float64 `json:"breakers"`
	Alerts   *float64 `json:"alerts"`
}

// Read returns the state of the page at host:port.
func Read(ctx context.Context, address string) (*State, error) {
	body, err := harness.Get(ctx, "http://"+address+"/api/v1/state")
	if err != nil {
		return nil, err
	}
	var state State
	if err := json.Unmarshal([]byte(body), &state); err != nil {
		return nil, fmt.Errorf("the page's state: %w", err)
	}
	return &state, nil
}

// ReadText returns the text form of the page at host:port.
func ReadText(ctx context.Context, address string) (string, error) {
	return harness.Get(ctx, "http://"+address+"/?width=200")
}
