//go:build linux

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// senders is how many requests are under way at once.
const senders = 4

// variant is a collector that runs with one of the configurations.
type variant struct {
	name       string
	command    *exec.Cmd
	output     *bytes.Buffer
	connection *grpc.ClientConn
	// spent is the processor time of each turn.
	spent       []time.Duration
	spansOfTurn int
	// attributes is how many attributes the spans of the last turn had.
	attributes int64
}

// ends is the part of the configuration that all variants share: what comes in
// by gRPC goes out by gRPC, nothing is compressed, and a request waits until
// its spans have been taken on the other side, so that a turn is over when its
// last request is.
const ends = `
receivers:
  otlp: {protocols: {grpc: {endpoint: %q}}}
exporters:
  otlp: {endpoint: %q, tls: {insecure: true}, compression: none, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
service:
  telemetry: {logs: {level: error}, metrics: {level: none}}
`

func startVariant(ctx context.Context, o options, name, sink, directory string) (*variant, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	shared := filepath.Join(directory, "ends.yaml")
	if err := os.WriteFile(shared, fmt.Appendf(nil, ends, address, sink), 0o600); err != nil {
		return nil, err
	}
	v := &variant{name: name, output: &bytes.Buffer{}}
	v.command = exec.Command(o.collector, "--config", shared, "--config", filepath.Join(o.variants, name+".yaml")) //nolint:gosec // the user's own command line
	v.command.Env = append(os.Environ(), "BENCH_DIRECTORY="+directory)
	v.command.Stdout, v.command.Stderr = v.output, v.output
	v.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := v.command.Start(); err != nil {
		return nil, err
	}
	v.connection, err = grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.WaitForReady(true)))
	if err != nil {
		return nil, errors.Join(err, v.stop())
	}
	// An empty request is answered as soon as the collector is there.
	ready, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	if err := v.send(ready, nil); err != nil {
		return nil, errors.Join(err, v.stop(), errors.New(v.output.String()))
	}
	return v, nil
}

func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

// stop ends the collector.
func (v *variant) stop() error {
	if v.connection != nil {
		_ = v.connection.Close()
	}
	// The result of one that is killed says nothing.
	_ = v.command.Process.Kill()
	_ = v.command.Wait()
	return nil
}

func (v *variant) send(ctx context.Context, request []byte) error {
	var answer []byte
	return v.connection.Invoke(ctx, exportMethod, &request, &answer)
}

// turn sends the requests and adds the processor time that the collector spent
// on them. It returns the number of spans that came through.
func (v *variant) turn(ctx context.Context, requests [][]byte, sink *sink) (int, error) {
	before, err := v.processorTime()
	if err != nil {
		return 0, err
	}
	taken, had := sink.spans(), sink.attributes.Load()
	work := make(chan []byte)
	errs := make(chan error, senders)
	var group sync.WaitGroup
	for range senders {
		group.Go(func() {
			for request := range work {
				if err := v.send(ctx, request); err != nil {
					select {
					case errs <- err:
					default:
					}
				}
			}
		})
	}
	for _, request := range requests {
		work <- request
	}
	close(work)
	group.Wait()
	select {
	case err := <-errs:
		return 0, fmt.Errorf("send: %w\n%s", err, v.output)
	default:
	}
	after, err := v.processorTime()
	if err != nil {
		return 0, err
	}
	v.spent = append(v.spent, after-before)
	v.spansOfTurn = len(requests) * spansOfRequest
	v.attributes = sink.attributes.Load() - had
	return sink.spans() - taken, nil
}

// processorTime is what the kernel has charged the collector, to the
// nanosecond. The number of a process's clock is made of its id as in
// clock_getcpuclockid(3).
func (v *variant) processorTime() (time.Duration, error) {
	const schedulerClock = 2
	clock := int32(^v.command.Process.Pid<<3 | schedulerClock)
	var spent unix.Timespec
	if err := unix.ClockGettime(clock, &spent); err != nil {
		return 0, fmt.Errorf("read the processor time of the collector: %w", err)
	}
	return time.Duration(spent.Nano()), nil
}

// resident is the collector's memory in bytes.
func (v *variant) resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", v.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0, errors.New("statm has no second field")
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err
}
