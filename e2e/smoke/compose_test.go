package smoke

import (
	"maps"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"github.com/otelcol-ml/otelcol-ml/e2e/harness"
)

func stack(t *testing.T, env ...string) *types.Project {
	t.Helper()
	return harness.LoadCompose(t, harness.ComposeOptions{Files: []string{harness.StackFile()}, Env: env})
}

// pinned is a tag of a release: no "latest", and no tag that moves with each
// patch.
var pinned = regexp.MustCompile(`:v?[0-9]+\.[0-9]+\.[0-9]+(-dev)?$`)

func TestComposeStack(t *testing.T) {
	project := stack(t)
	assert.ElementsMatch(t, []string{"otelcol-ml", "jaeger", "prometheus", "grafana"}, project.ServiceNames())
	for name, service := range project.Services {
		t.Run(name, func(t *testing.T) {
			assert.Regexp(t, pinned, service.Image)
			checkHardened(t, &service)
			require.NotNil(t, service.HealthCheck)
			assert.Equal(t, "CMD", service.HealthCheck.Test[0], "an image need not have a shell")
			assert.Positive(t, int64(service.MemLimit), "a program that leaks takes the host down")
			checkMounts(t, project, &service)
			for _, port := range service.Ports {
				assert.Equal(t, "127.0.0.1", port.HostIP, "port %s", port.Published)
			}
		})
	}
	for _, port := range allPorts(stack(t, "BIND_ADDRESS=0.0.0.0")) {
		assert.Equal(t, "0.0.0.0", port.HostIP, "BIND_ADDRESS opens port %s", port.Published)
	}
}

func allPorts(project *types.Project) []types.ServicePortConfig {
	var ports []types.ServicePortConfig
	for _, service := range project.Services {
		ports = append(ports, service.Ports...)
	}
	return ports
}

func checkHardened(t *testing.T, service *types.ServiceConfig) {
	t.Helper()
	assert.True(t, service.ReadOnly)
	assert.Equal(t, []string{"ALL"}, service.CapDrop)
	assert.Contains(t, service.SecurityOpt, "no-new-privileges:true")
	assert.False(t, service.Privileged)
	assert.Equal(t, "unless-stopped", service.Restart)
	require.NotNil(t, service.Logging)
	assert.Equal(t, "10m", service.Logging.Options["max-size"], "a log without a bound fills the disk")
}

// checkMounts expects files of the repository to be there and read-only, and
// volumes to be declared.
func checkMounts(t *testing.T, project *types.Project, service *types.ServiceConfig) {
	t.Helper()
	for _, volume := range service.Volumes {
		switch volume.Type {
		case types.VolumeTypeBind:
			assert.True(t, volume.ReadOnly, volume.Target)
			if strings.HasPrefix(volume.Source, harness.Path()) {
				_, err := os.Stat(volume.Source)
				assert.NoError(t, err)
			}
		case types.VolumeTypeVolume:
			assert.Contains(t, project.Volumes, volume.Source)
		default:
			assert.Fail(t, "unexpected mount", "%s of type %s", volume.Target, volume.Type)
		}
	}
}

// What other people's configurations rely on: names, ports and paths.
func TestComposeCollector(t *testing.T) {
	project := stack(t)
	service, err := project.GetService("otelcol-ml")
	require.NoError(t, err)
	assert.Equal(t, "otelcol-ml:"+readManifest(t).Dist.Version, service.Image, "the tag that make image gives")
	assert.FileExists(t, filepath.Join(service.Build.Context, service.Build.Dockerfile))

	published := map[string]uint32{}
	for _, port := range service.Ports {
		published[port.Published] = port.Target
	}
	assert.Equal(t, map[string]uint32{"4317": 4317, "4318": 4318, "11000": 11000, "8889": 8889, "9464": 8889, "8890": 8890}, published)
	require.Contains(t, service.Networks, "default")
	assert.ElementsMatch(t, []string{"otel-collector", "optl-collector"}, service.Networks["default"].Aliases)

	volumes := map[string]string{}
	for _, volume := range service.Volumes {
		volumes[volume.Target] = volume.Source
	}
	assert.Equal(t, "queue", volumes["/var/lib/otelcol-ml/queue"])
	assert.Equal(t, "reproductions", volumes["/var/lib/otelcol-ml/reproductions"])
	assert.Equal(t, "state", volumes["/var/lib/otelcol-ml/state"])

	assert.Equal(t, "200", *service.Environment["GOGC"])
	var limit types.UnitBytes
	require.NoError(t, limit.DecodeMapstructure(*service.Environment["GOMEMLIMIT"]))
	assert.InDelta(t, 0.6, float64(limit)/float64(service.MemLimit), 0.01, "memory_limiter refuses data beyond three fifths of what the container may have")
}

// The collector of the stack is started with the stack's files and variables;
// only the queue's folder, which the image has, is another.
func TestComposeCollectorStarts(t *testing.T) {
	t.Parallel()
	project := stack(t)
	service, err := project.GetService("otelcol-ml")
	require.NoError(t, err)
	configs := mountedConfigs(t, &service)
	require.Len(t, configs, 2)
	assert.Equal(t, harness.Path("distribution", "config", "agent.yaml"), configs[0])

	env := slices.Concat(imageEnv(t), serviceEnv(&service), []string{
		"OTELCOL_ML_QUEUE_DIR=" + t.TempDir(),
		"OTELCOL_ML_REPRO_DIR=" + filepath.Join(t.TempDir(), "reproductions"),
		"OTELCOL_ML_STATE_DIR=" + filepath.Join(t.TempDir(), "state"),
	})
	sink := harness.StartSink(t)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: configs[0],
		Merged: configs[1:],
		Env:    env,
		Overrides: map[string]any{
			"exporters::otlp_grpc/jaeger::endpoint": sink.Endpoint,
		},
	})

	listening := map[string]string{}
	for path, address := range collector.ConfiguredAddresses() {
		host, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		assert.Equal(t, "0.0.0.0", host, "%s is out of reach of other containers", path)
		listening[port] = path
	}
	for _, port := range service.Ports {
		assert.Contains(t, listening, strconv.Itoa(int(port.Target)), "nothing listens at port %s", port.Published)
	}
	assert.Contains(t, strings.Join(service.HealthCheck.Test, " "), ":13133/")
	assert.Contains(t, listening, "13133")
	checkTargets(t, project, slices.Collect(maps.Keys(listening)))

	root := "http://" + collector.Address(t, "receivers::otlp/root::protocols::http")
	require.NoError(t, harness.PostTraces(t.Context(), root+"/", oneSpan("unknown_service:python", "epoch_1", nil)))
	require.NoError(t, harness.PostMetrics(t.Context(), root+"/v1/metrics", oneCounter("torchtel", "train.step.count", 42, nil)))
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Equal(c, []string{"epoch_1"}, spanNames(sink))
		samples, err := harness.Scrape(t.Context(), collector.Address(t, "exporters::prometheus"))
		if assert.NoError(c, err) {
			assert.Len(c, harness.Select(samples, "train_step_count_total", nil), 1)
		}
	}, arrival, poll)
	stopDropIn(t, collector)
}

// mountedConfigs returns the files of this repository that a service's command
// names by their paths in the container.
func mountedConfigs(t *testing.T, service *types.ServiceConfig) []string {
	t.Helper()
	var files []string
	for _, argument := range service.Command {
		_, target, found := strings.Cut(argument, "=")
		require.True(t, found, argument)
		files = append(files, sourceOf(t, service, strings.TrimPrefix(target, "file:")))
	}
	return files
}

// sourceOf returns the file that a container has at a path: what is mounted
// there, or what the Dockerfile copies there.
func sourceOf(t *testing.T, service *types.ServiceConfig, target string) string {
	t.Helper()
	for _, volume := range service.Volumes {
		if volume.Target == target {
			return volume.Source
		}
		if rest, below := strings.CutPrefix(target, volume.Target+"/"); below && volume.Type == types.VolumeTypeBind {
			return filepath.Join(volume.Source, filepath.FromSlash(rest))
		}
	}
	require.Equal(t, "/etc/otelcol-ml/config.yaml", target, "neither mounted nor in the image")
	return copiedTo(t, target)
}

func serviceEnv(service *types.ServiceConfig) []string {
	var env []string
	for name, value := range service.Environment {
		if value != nil {
			env = append(env, name+"="+*value)
		}
	}
	return env
}

// checkTargets expects Prometheus to scrape services of the stack at ports that
// they listen on.
func checkTargets(t *testing.T, project *types.Project, listening []string) {
	t.Helper()
	text, err := os.ReadFile(harness.Path("docker", "prometheus", "prometheus.yaml"))
	require.NoError(t, err)
	var config struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			StaticConfigs []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	require.NoError(t, yaml.Unmarshal(text, &config))
	require.NotEmpty(t, config.ScrapeConfigs)
	for _, scrape := range config.ScrapeConfigs {
		for _, static := range scrape.StaticConfigs {
			for _, target := range static.Targets {
				host, port, err := net.SplitHostPort(target)
				require.NoError(t, err)
				assert.Contains(t, project.ServiceNames(), host)
				assert.Contains(t, listening, port)
			}
		}
	}
	for _, rules := range config.RuleFiles {
		assert.FileExists(t, harness.Path("docker", "prometheus", filepath.FromSlash(rules)), "the folder is mounted as a whole")
	}
}

// The servers run with the files that the end-to-end tests run them with.
func TestComposeServersConfigurations(t *testing.T) {
	project := stack(t)
	for name, want := range map[string]string{
		"prometheus": harness.Path("docker", "prometheus", "prometheus.yaml"),
		"jaeger":     harness.Path("docker", "jaeger", "jaeger.yaml"),
	} {
		service, err := project.GetService(name)
		require.NoError(t, err)
		found := ""
		for _, argument := range service.Command {
			for _, flag := range []string{"--config=file:", "--config.file="} {
				if target, ok := strings.CutPrefix(argument, flag); ok {
					found = sourceOf(t, &service, target)
				}
			}
		}
		assert.Equal(t, want, found, name)
	}
}

func TestComposeGPU(t *testing.T) {
	base := stack(t)
	for profile, capabilities := range map[string][]string{
		"rootless":    nil,
		"attribution": {"SYS_PTRACE", "DAC_READ_SEARCH"},
	} {
		t.Run(profile, func(t *testing.T) {
			project := harness.LoadCompose(t, harness.ComposeOptions{
				Files:    []string{harness.StackFile(), harness.StackGPUFile()},
				Profiles: []string{profile},
			})
			require.ElementsMatch(t, append(base.ServiceNames(), "gpu-"+profile), project.ServiceNames())
			for name, service := range base.Services {
				if name == "otelcol-ml" { // what it adds is a port for them, which is not published
					added := project.Services[name]
					assert.Equal(t, append(slices.Clone(service.Command), "--config=/etc/otelcol-ml/collectors.yaml"), added.Command)
					assert.Equal(t, harness.Path("docker", "collector", "collectors.yaml"), sourceOf(t, &added, "/etc/otelcol-ml/collectors.yaml"))
					service.Command, service.Volumes = added.Command, added.Volumes
				}
				assert.Equal(t, service, project.Services[name], "GPUs give %s no privilege", name)
			}

			service, err := project.GetService("gpu-" + profile)
			require.NoError(t, err)
			checkAgentImage(t, &service)
			assert.Equal(t, "nvidia", service.Runtime)
			assert.Equal(t, "all", *service.Environment["NVIDIA_VISIBLE_DEVICES"])
			assert.Equal(t, "utility", *service.Environment["NVIDIA_DRIVER_CAPABILITIES"])
			assert.Equal(t, "host", service.Pid)
			assert.Equal(t, capabilities, service.CapAdd)
			assert.Equal(t, profile == "attribution", service.User == "0:0")
			assert.Empty(t, service.Ports, "what is privileged takes nothing from the network")
			checkHardened(t, &service)
			checkMounts(t, project, &service)
			assert.Equal(t, harness.Path("docker", "collector", "gpu.yaml"), sourceOf(t, &service, "/etc/otelcol-ml/config.yaml"))
		})
	}
}

// useAgent has a test run the smaller collector.
func useAgent(t *testing.T) {
	t.Helper()
	t.Setenv("OTELCOL_ML_BINARY", harness.Binary(t, "build", "bin", "otelcol-ml-agent"))
}

// checkAgentImage expects the image of the smaller collector, as make image and Compose
// build it.
func checkAgentImage(t *testing.T, service *types.ServiceConfig) {
	t.Helper()
	const program = "otelcol-ml-agent"
	assert.Equal(t, program+":"+readManifest(t).Dist.Version, service.Image)
	require.NotNil(t, service.Build)
	assert.FileExists(t, filepath.Join(service.Build.Context, service.Build.Dockerfile))
	require.NotNil(t, service.Build.Args["PROGRAM"])
	assert.Equal(t, program, *service.Build.Args["PROGRAM"])
}

// The kernel's log is for the collector that reads GPUs, and only with the file that
// adds it.
func TestComposeKernelLog(t *testing.T) {
	files := []string{harness.StackFile(), harness.StackGPUFile()}
	before := harness.LoadCompose(t, harness.ComposeOptions{Files: files, Profiles: []string{"attribution"}})
	after := harness.LoadCompose(t, harness.ComposeOptions{
		Files: append(files, harness.Path("docker", "compose.kernel-log.yaml")), Profiles: []string{"attribution"},
	})
	require.Equal(t, before.ServiceNames(), after.ServiceNames())
	for name, service := range before.Services {
		if name == "gpu-attribution" {
			service.CapAdd = append(service.CapAdd, "SYSLOG")
			service.Devices = after.Services[name].Devices
			require.Len(t, service.Devices, 1)
			assert.Equal(t, "/dev/kmsg", service.Devices[0].Source)
			assert.Equal(t, "/dev/kmsg", service.Devices[0].Target)
			assert.Equal(t, "r", service.Devices[0].Permissions)
		}
		assert.Equal(t, service, after.Services[name])
	}
}

// The collector that reads GPUs listens nowhere but for its own health and metrics, and
// starts where there is no GPU.
func TestComposeGPUCollectorStarts(t *testing.T) {
	useAgent(t)
	sink := harness.StartSink(t)
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("docker", "collector", "gpu.yaml"),
		Env:    []string{"STACK_ENDPOINT=" + sink.Endpoint},
		Overrides: map[string]any{
			"receivers::gpu::root_path":           "",
			"receivers::gpu::collection_interval": "1s",
		},
	})
	assert.Equal(t, map[string]string{"extensions::health_check": "127.0.0.1:13133", harness.TelemetryPath: "127.0.0.1:8888"}, collector.ConfiguredAddresses())
	collector.AwaitHealthy(t)
	require.EventuallyWithT(t, func(c *assert.CollectT) {
		assert.Contains(c, sink.Metrics(), "nvidia.gpu.driver.state")
		own, err := harness.Scrape(t.Context(), collector.Address(t, harness.TelemetryPath))
		assert.NoError(c, err)
		assert.NotEmpty(c, harness.Select(own, "otelcol_scraper_scraped_metric_points", nil))
	}, arrival, poll)
	stopDropIn(t, collector)
}

// Readings of GPUs are believed at the port for collectors, and not at that for clients.
func TestComposeBelievesReadersOfGPUs(t *testing.T) {
	t.Parallel()
	receivers := []string{"otlp", "forward/collectors"} // otlp/root is of stack.yaml
	collector := harness.StartCollector(t, harness.CollectorOptions{
		Config: harness.Path("distribution", "config", "agent.yaml"),
		Merged: []string{harness.Path("docker", "collector", "collectors.yaml")},
		Overrides: map[string]any{
			"service::pipelines::metrics::receivers": receivers, "service::pipelines::logs::receivers": receivers,
		},
		Env: []string{"OTELCOL_ML_TRUSTED_SENDERS=[]", "OTELCOL_ML_REPRO_DIR=" + t.TempDir()},
	})
	for port, name := range map[string]string{"otlp": "client", "otlp/collectors": "reader"} {
		sender, err := harness.NewGRPCSender(collector.Address(t, "receivers::"+port+"::protocols::grpc"))
		require.NoError(t, err)
		for _, metric := range []string{"hw.status", "app." + name} {
			require.NoError(t, sender.Metrics(t.Context(), oneCounter(name, metric, 1, map[string]string{"hw.id": name})))
		}
		require.NoError(t, sender.Close())
	}
	for _, name := range []string{"client", "reader"} {
		awaitSome(t, collector, "app_"+name+"_total", "what is no reading")
	}
	found := awaitSeries(t, collector, "hw_status_total", 1)
	assert.Equal(t, "reader", found[0].Labels["hw_id"])
}
