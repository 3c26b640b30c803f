package harness

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// Kafka is a running Apache Kafka of one node, which creates topics with four
// partitions when they are first used.
type Kafka struct {
	*Process
	// Address is where clients connect, as host:port. It survives restarts.
	Address string
	// folder has the data and the configuration.
	folder string
}

// kafkaProperties are the settings of the node. The last three shorten
// a restart after a kill and make a consumer's first assignment immediate.
const kafkaProperties = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:%[2]d
listeners=PLAINTEXT://127.0.0.1:%[1]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=PLAINTEXT://127.0.0.1:%[1]d
controller.listener.names=CONTROLLER
log.dirs=%[3]s
num.partitions=4
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
broker.session.timeout.ms=6000
broker.heartbeat.interval.ms=1000
group.initial.rebalance.delay.ms=0
`

// StartKafka starts Apache Kafka (e2e/servers/kafka/fetch.sh) with a new, empty
// log and waits until it answers clients.
func StartKafka(tb testing.TB) *Kafka {
	tb.Helper()
	kafka := &Kafka{folder: tb.TempDir()}
	port, controller := FreePort(tb), FreePort(tb)
	kafka.Address = loopback(port)
	properties := fmt.Sprintf(kafkaProperties, port, controller, filepath.Join(kafka.folder, "log"))
	if err := os.WriteFile(kafka.properties(), []byte(properties), 0o600); err != nil {
		tb.Fatal(err)
	}
	// Any id will do, in the form that Kafka gives ids.
	command := kafka.command(tb, "kafka.tools.StorageTool", "format", "--cluster-id", "MkU3OEVBNTcwNTJENDM2Qk", "--config", kafka.properties())
	if code, output := Run(tb, command, StartTimeout); code != 0 {
		tb.Fatalf("formatting Kafka's storage: exit code %d:\n%s", code, output)
	}
	kafka.Restart(tb)
	return kafka
}

// Restart starts Kafka again after Kill or Stop, with its log and at its address,
// and waits until it answers clients.
func (k *Kafka) Restart(tb testing.TB) {
	tb.Helper()
	k.Process = Start(tb, k.command(tb, "kafka.Kafka", k.properties()))
	k.AwaitOutput(tb, "Kafka Server started")
}

func (k *Kafka) properties() string { return filepath.Join(k.folder, "server.properties") }

// command returns one of Kafka's programs, with a small heap.
func (k *Kafka) command(tb testing.TB, class string, arguments ...string) Command {
	tb.Helper()
	java, err := exec.LookPath("java")
	jars := Path(".cache", "servers", "kafka")
	if _, missing := os.Stat(jars); missing != nil || err != nil {
		tb.Fatal("Kafka is missing; fetch it with: e2e/servers/kafka/fetch.sh")
	}
	return Command{
		Name: class,
		Path: java,
		Args: append([]string{
			"-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true",
			"-Dlog4j2.configurationFile=" + Path("e2e", "servers", "kafka", "log4j2.properties"),
			"-cp", filepath.Join(jars, "*"), class,
		}, arguments...),
		Dir: k.folder,
	}
}

// kafkaTopics are the topics that the shipped configurations write.
var kafkaTopics = []string{"otlp_spans", "otlp_metrics", "otlp_logs"}

// kafkaGroups are the consumer groups of the shipped configurations.
var kafkaGroups = []string{"otelcol-ml-traces", "otelcol-ml-metrics", "otelcol-ml-logs"}

// StartKafkaStandIn starts a broker inside the test, which speaks Kafka's protocol
// and keeps its log in memory, and returns its address. Its topics have eight
// partitions.
func StartKafkaStandIn(tb testing.TB) string {
	tb.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(8, kafkaTopics...))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(cluster.Close)
	return cluster.ListenAddrs()[0]
}

// AwaitKafkaMembers waits until every consumer group of the shipped configurations
// has exactly these members, each of which has partitions.
func AwaitKafkaMembers(tb testing.TB, address string, members ...string) {
	tb.Helper()
	admin := kafkaAdmin(tb, address)
	defer admin.Close()
	require.EventuallyWithT(tb, func(c *assert.CollectT) {
		groups, err := admin.DescribeGroups(tb.Context(), kafkaGroups...)
		assert.NoError(c, err)
		for _, name := range kafkaGroups {
			group := groups[name]
			assert.Equal(c, "Stable", group.State, name)
			var found []string
			for _, member := range group.Members {
				assigned, _ := member.Assigned.AsConsumer()
				if assert.NotNil(c, member.InstanceID) && assigned != nil && len(assigned.Topics) > 0 {
					found = append(found, *member.InstanceID)
				}
			}
			assert.ElementsMatch(c, members, found, name)
		}
	}, ArrivalTimeout, ArrivalPoll)
}

// AwaitKafkaRead waits until the consumer groups of the shipped configurations have
// read everything and said so.
func AwaitKafkaRead(tb testing.TB, address string) {
	tb.Helper()
	admin := kafkaAdmin(tb, address)
	defer admin.Close()
	require.EventuallyWithT(tb, func(c *assert.CollectT) {
		lags, err := admin.Lag(tb.Context(), kafkaGroups...)
		assert.NoError(c, err)
		for _, name := range kafkaGroups {
			group := lags[name]
			assert.NoError(c, group.Error(), name)
			assert.Zero(c, group.Lag.Total(), name)
		}
	}, ArrivalTimeout, ArrivalPoll)
}

func kafkaAdmin(tb testing.TB, address string) *kadm.Client {
	tb.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(address))
	if err != nil {
		tb.Fatal(err)
	}
	return kadm.NewClient(client)
}
