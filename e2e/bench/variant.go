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
	name string
	// method is the gRPC method that takes its requests.
	method     string
	command    *exec.Cmd
	output     *bytes.Buffer
	connection *grpc.ClientConn
	// profiles is the address of its profiles, empty without options.pprof.
	profiles string
	// spent is the processor time of each turn.
	spent       []time.Duration
	itemsOfTurn int
	// attributes is how many attributes the items of the last turn had.
	attributes int64
}

// ends is the part of the configuration that all variants share: what comes in
// by gRPC goes out by gRPC, nothing is compressed, and a request waits until
// its items have been taken on the other side. The variant agent has its own exporter.
const ends = `
receivers:
  otlp: {protocols: {grpc: {endpoint: %q}}}
exporters:
  otlp: {endpoint: %q, tls: {insecure: true}, compression: none, sending_queue: {enabled: false}, retry_on_failure: {enabled: false}}
service:
  telemetry: {logs: {level: error}, metrics: {level: none}}
`

// profiled is added to ends for a profile.
const profiled = `  extensions: [ml_guard, pprof]
extensions:
  ml_guard:
  pprof: {endpoint: %q}
`

// unprofiled is added to ends otherwise. The extension costs nothing where no receiver has
// it as middleware.
const unprofiled = `  extensions: [ml_guard]
extensions:
  ml_guard:
`

func startVariant(ctx context.Context, o options, of load, name, sink, directory string) (*variant, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return nil, err
	}
	v := &variant{name: name, method: of.method, output: &bytes.Buffer{}}
	text := fmt.Appendf(nil, ends, address, sink)
	if o.pprof {
		if v.profiles, err = freeAddress(); err != nil {
			return nil, err
		}
		text = fmt.Appendf(text, profiled, v.profiles)
	} else if !o.inStock(name) {
		text = append(text, unprofiled...)
	}
	shared := filepath.Join(directory, "ends.yaml")
	if err := os.WriteFile(shared, text, 0o600); err != nil {
		return nil, err
	}
	binary, file, environment := o.collector, name+".yaml", strings.Split(strings.Trim(o.environment, ","), ",")
	if of, is := strings.CutSuffix(name, before); is {
		binary, file = o.before, of+".yaml"
	}
	switch {
	case name == stock:
		binary, file, environment = o.stock, reference+".yaml", nil
	case o.inStock(name):
		binary, environment = o.stock, nil
	}
	arguments, err := configurations(filepath.Join(o.variants, file), shared)
	if err != nil {
		return nil, err
	}
	v.command = exec.Command(binary, arguments...) //nolint:gosec // the user's own command line
	v.command.Env = append(os.Environ(), "BENCH_DIRECTORY="+directory, "OTELCOL_ML_REPRO_DIR="+directory, "OTELCOL_ML_STATE_DIR="+filepath.Join(directory, "state"),
		"JAEGER_ENDPOINT="+sink, "OTLP_HTTP_ENDPOINT="+anyPort, "HEALTH_ENDPOINT="+anyPort, "PROMETHEUS_ENDPOINT="+anyPort, "ML_VIEW_ENDPOINT="+anyPort)
	v.command.Env = append(v.command.Env, environment...)
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

// stock is the name of the other collector, and begins those of the variants that run in it,
// too. before ends that of a variant with an earlier binary.
const (
	stock  = "stock"
	before = "_before"
)

// inStock reports whether a variant runs in the other collector.
func (o *options) inStock(name string) bool {
	return o.stock != "" && strings.HasPrefix(name, stock) && !strings.HasSuffix(name, before)
}

// over begins the first line of a variant of a shipped configuration.
const over = "# over: "

// configurations returns the collector's arguments: the configuration that the variant
// is over, the ends, and the variant.
func configurations(variant, ends string) (arguments []string, err error) {
	text, err := os.ReadFile(variant) //nolint:gosec // the user's own command line
	if err != nil {
		return nil, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	files := []string{ends, variant}
	if base, is := strings.CutPrefix(first, over); is {
		files = append([]string{filepath.Join(filepath.Dir(variant), base)}, files...)
	}
	for _, file := range files {
		arguments = append(arguments, "--config", file)
	}
	return arguments, nil
}

// anyPort is the address of what nobody asks.
const anyPort = "127.0.0.1:0"

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
	return v.connection.Invoke(ctx, v.method, &request, &answer)
}

// turn sends the requests and adds the processor time that the collector spent
// on them. It returns the number of items that came through.
func (v *variant) turn(ctx context.Context, requests [][]byte, sink *sink) (int, error) {
	before, err := v.processorTime()
	if err != nil {
		return 0, err
	}
	taken, had := sink.items(), sink.attributes.Load()
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
	// What waits in a queue belongs to the turn, too.
	for deadline := time.Now().Add(settleTime); sink.items()-taken < len(requests)*itemsOfRequest && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	after, err := v.processorTime()
	if err != nil {
		return 0, err
	}
	v.spent = append(v.spent, after-before)
	v.itemsOfTurn = len(requests) * itemsOfRequest
	v.attributes = sink.attributes.Load() - had
	return sink.items() - taken, nil
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

// resident is the collector's memory in bytes, without the pages of its binary: how many
// of those are mapped depends on the kernel.
func (v *variant) resident() (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", v.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text))
	if len(fields) < 3 {
		return 0, errors.New("statm has no third field")
	}
	all, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return 0, err
	}
	ofFiles, err := strconv.ParseInt(fields[2], 10, 64)
	return (all - ofFiles) * int64(os.Getpagesize()), err
}
