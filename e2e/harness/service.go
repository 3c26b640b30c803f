package harness

import (
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"go.yaml.in/yaml/v3"
)

// Stack runs services of a compose file as containers, without Compose: the
// engine's own command line is there wherever the engine is. Names of networks,
// volumes and containers are the test's own, and so are the host's ports;
// everything else is the file's.
type Stack struct {
	engine  *Engine
	project *types.Project
	prefix  string
}

// NewStack makes the network and the volumes of a compose file. All of it is
// removed when the test ends.
func NewStack(tb testing.TB, engine *Engine, project *types.Project) *Stack {
	tb.Helper()
	stack := &Stack{
		engine:  engine,
		project: project,
		prefix:  fmt.Sprintf("otelcol-ml-test-%d-%d", os.Getpid(), time.Now().UnixNano()),
	}
	engine.Command(tb, "network", "create", stack.prefix)
	tb.Cleanup(func() { engine.cleanUp(tb, "network", "rm", stack.prefix) })
	for _, name := range slices.Sorted(maps.Keys(project.Volumes)) {
		volume := stack.volume(name)
		engine.Command(tb, "volume", "create", volume)
		tb.Cleanup(func() { engine.cleanUp(tb, "volume", "rm", volume) })
	}
	return stack
}

func (s *Stack) volume(name string) string { return s.prefix + "-" + name }

// Container is a running container of a service. Its process is the engine's
// client, which passes signals on and ends with the container's exit code.
type Container struct {
	*Process
	engine *Engine
	name   string
	ports  map[uint32]string
	check  []string
}

// StartService starts a service with another image, if it is given one, and
// waits until the service's own health check, run inside the container,
// succeeds.
func (s *Stack) StartService(tb testing.TB, name, image string) *Container {
	tb.Helper()
	service, err := s.project.GetService(name)
	if err != nil {
		tb.Fatal(err)
	}
	if image == "" {
		image = service.Image
	}
	container := &Container{
		engine: s.engine,
		// A service may be started again before its first container is removed.
		name:  fmt.Sprintf("%s-%s-%d", s.prefix, name, time.Now().UnixNano()),
		ports: map[uint32]string{},
	}
	if service.HealthCheck != nil {
		container.check = service.HealthCheck.Test
	}
	arguments, unknown := s.arguments(tb, &service, container)
	if unknown != "" {
		tb.Fatalf("service %s has settings that this test does not pass on, so that it would test something else: %s", name, unknown)
	}
	container.start(tb, name, slices.Concat(arguments, []string{image}, entryArguments(service.Entrypoint), service.Command))
	container.await(tb, func() error { return container.healthy(tb) })
	return container
}

// entryArguments returns what follows the program of an entry point. The engines
// take the program as an option and all else behind the image.
func entryArguments(entrypoint types.ShellCommand) []string {
	if len(entrypoint) < 2 {
		return nil
	}
	return entrypoint[1:]
}

// RunImage starts an image with further arguments of the engine's "run" and
// waits until its health check answers.
func (s *Stack) RunImage(tb testing.TB, name, image string, arguments, command []string, ports ...uint32) *Container {
	tb.Helper()
	container := &Container{
		engine: s.engine,
		name:   fmt.Sprintf("%s-%s-%d", s.prefix, name, time.Now().UnixNano()),
		ports:  map[uint32]string{},
	}
	arguments = append([]string{"--network", s.prefix}, arguments...)
	for _, port := range ports {
		arguments = append(arguments, "--publish", container.publish(tb, "127.0.0.1", port))
	}
	container.start(tb, name, slices.Concat(arguments, []string{image}, command))
	return container
}

func (c *Container) start(tb testing.TB, name string, arguments []string) {
	tb.Helper()
	c.Process = Start(tb, Command{
		Name: name,
		Path: c.engine.name,
		Args: slices.Concat(c.engine.global, []string{"run", "--name", c.name}, c.engine.run, arguments),
	})
	// Ending the engine's client does not end the container.
	tb.Cleanup(func() { c.engine.cleanUp(tb, "rm", "--force", "--volumes", c.name) })
}

// publish returns the publication of a port at a free one of the host.
func (c *Container) publish(tb testing.TB, host string, port uint32) string {
	tb.Helper()
	free := FreePort(tb)
	c.ports[port] = net.JoinHostPort(host, strconv.Itoa(free))
	return fmt.Sprintf("%s:%d:%d", host, free, port)
}

// Address returns where the host reaches a port of the container.
func (c *Container) Address(tb testing.TB, port uint32) string {
	tb.Helper()
	address, ok := c.ports[port]
	if !ok {
		tb.Fatalf("port %d of %s is not published; %v are", port, c.name, c.ports)
	}
	return address
}

// Exec runs a program inside the container and returns its output.
func (c *Container) Exec(tb testing.TB, command ...string) (string, error) {
	tb.Helper()
	return c.engine.command(tb, append([]string{"exec", c.name}, command...)...)
}

// healthy runs the service's health check as the engine would.
func (c *Container) healthy(tb testing.TB) error {
	tb.Helper()
	if len(c.check) < 2 || c.check[0] != "CMD" {
		tb.Fatalf("the health check %q is not a command", c.check)
	}
	_, err := c.Exec(tb, c.check[1:]...)
	return err
}

// Kill ends the container's process at once, as a crash does.
func (c *Container) Kill(tb testing.TB) {
	tb.Helper()
	c.engine.Command(tb, "kill", "--signal", "KILL", c.name)
	c.wait(tb, stopTimeout)
}

// HostPID returns the number that the host has for the container's process.
func (c *Container) HostPID(tb testing.TB) string {
	tb.Helper()
	return c.engine.Command(tb, "inspect", "--format", "{{.State.Pid}}", c.name)
}

// CopyOut copies a folder of the container, volumes included, into a temporary
// one and returns it.
func (c *Container) CopyOut(tb testing.TB, folder string) string {
	tb.Helper()
	out := filepath.Join(tb.TempDir(), "copy")
	c.engine.Command(tb, "cp", c.name+":"+folder, out)
	return out
}

// arguments translates a service into arguments of the engine's "run", and says
// what is left that it does not know.
func (s *Stack) arguments(tb testing.TB, service *types.ServiceConfig, container *Container) (arguments []string, unknown string) {
	tb.Helper()
	add := func(values ...string) { arguments = append(arguments, values...) }
	left := *service

	add("--network", s.prefix, "--network-alias", service.Name)
	for name, network := range service.Networks {
		if name != "default" {
			tb.Fatalf("service %s is in the network %s; only the default one is made", service.Name, name)
		}
		if network != nil {
			for _, alias := range network.Aliases {
				add("--network-alias", alias)
			}
		}
	}
	left.Networks = nil

	if len(service.Entrypoint) > 0 {
		add("--entrypoint", service.Entrypoint[0])
	}
	left.Entrypoint = nil
	if service.ReadOnly {
		add("--read-only")
	}
	for _, capability := range service.CapDrop {
		add("--cap-drop", capability)
	}
	for _, capability := range service.CapAdd {
		add("--cap-add", capability)
	}
	for _, option := range service.SecurityOpt {
		add("--security-opt", strings.Replace(option, "no-new-privileges:true", "no-new-privileges", 1))
	}
	left.ReadOnly, left.CapDrop, left.CapAdd, left.SecurityOpt = false, nil, nil, nil
	if service.User != "" {
		add("--user", service.User)
	}
	if service.Pid != "" {
		add("--pid", service.Pid)
	}
	left.User, left.Pid = "", ""

	for _, name := range slices.Sorted(maps.Keys(service.Environment)) {
		if value := service.Environment[name]; value != nil {
			add("--env", name+"="+*value)
		}
	}
	left.Environment = nil
	if service.MemLimit > 0 {
		add("--memory", strconv.FormatInt(int64(service.MemLimit), 10))
	}
	left.MemLimit = 0
	if service.StopGracePeriod != nil {
		add("--stop-timeout", strconv.Itoa(int(time.Duration(*service.StopGracePeriod).Seconds())))
	}
	left.StopGracePeriod = nil

	for _, volume := range service.Volumes {
		source := volume.Source
		if volume.Type == types.VolumeTypeVolume {
			source = s.volume(source)
		}
		mount := source + ":" + volume.Target
		if volume.ReadOnly {
			mount += ":ro"
		}
		add("--volume", mount)
	}
	for _, folder := range service.Tmpfs {
		add("--tmpfs", folder)
	}
	left.Volumes, left.Tmpfs = nil, nil

	for _, port := range service.Ports {
		// Two ports of the host may lead to one of the container.
		if _, twice := container.ports[port.Target]; !twice {
			add("--publish", container.publish(tb, port.HostIP, port.Target))
		}
	}
	left.Ports = nil

	// What does not change how the program runs, or is done in another way: the
	// image and its build, the command, when it is restarted (a test must see a
	// crash), where its log goes, its health check, the order of starting.
	left.Name, left.Image, left.Build, left.Command = "", "", nil, nil
	left.Restart, left.Logging, left.HealthCheck, left.DependsOn = "", nil, nil, nil
	left.Profiles = nil
	if !reflect.ValueOf(left).IsZero() {
		text, err := yaml.Marshal(left)
		if err != nil {
			tb.Fatal(err)
		}
		unknown = string(text)
	}
	return arguments, unknown
}
