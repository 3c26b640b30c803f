package mlguardextension

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/configmiddleware"
	"go.opentelemetry.io/collector/config/configtls"
	"go.opentelemetry.io/collector/pdata/plog/plogotlp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/metric/metricdata/metricdatatest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	"github.com/otelcol-ml/otelcol-ml/extension/mlguardextension/internal/metadata"
	"github.com/otelcol-ml/otelcol-ml/extension/mlguardextension/internal/metadatatest"
)

// place is an endpoint that a test can stop as SIGSTOP does: the kernel accepts
// connections, and nothing answers.
type place struct {
	plogotlp.UnimplementedGRPCServer
	address string
	refuses error

	mu      sync.Mutex
	calls   int
	running chan struct{} // closed while it runs
	// answers is closed while calls are answered.
	answers chan struct{}
}

func (p *place) Export(ctx context.Context, _ plogotlp.ExportRequest) (plogotlp.ExportResponse, error) {
	p.mu.Lock()
	p.calls++
	answers := p.answers
	p.mu.Unlock()
	select {
	case <-answers:
	case <-ctx.Done():
	}
	return plogotlp.NewExportResponse(), p.refuses
}

func (p *place) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls
}

func (p *place) stopped() { p.mu.Lock(); p.running = make(chan struct{}); p.mu.Unlock() }

func (p *place) goesOn() {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.running:
	default:
		close(p.running)
	}
}

// answersNobody has the place take calls and answer none, until the returned function is
// called.
func (p *place) answersNobody() (again func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	answers := make(chan struct{})
	p.answers = answers
	return func() { close(answers) }
}

// pipe passes bytes on while the place runs.
type pipe struct {
	net.Conn
	*place
}

func (p pipe) Read(b []byte) (int, error) {
	n, err := p.Conn.Read(b)
	p.mu.Lock()
	running := p.running
	p.mu.Unlock()
	<-running
	return n, err
}

func newPlace(t *testing.T) *place {
	t.Helper()
	return newPlaceWith(t)
}

func newPlaceWith(t *testing.T, options ...grpc.ServerOption) *place {
	t.Helper()
	p := &place{running: make(chan struct{}), answers: make(chan struct{})}
	close(p.running)
	close(p.answers)
	server := grpc.NewServer(options...)
	plogotlp.RegisterGRPCServer(server, p)
	behind, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	front, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p.address = front.Addr().String()
	var running sync.WaitGroup
	running.Go(func() { assert.NoError(t, server.Serve(behind)) })
	running.Go(func() {
		for {
			client, err := front.Accept()
			if err != nil {
				return
			}
			inner, err := net.Dial("tcp", behind.Addr().String())
			if err != nil {
				_ = client.Close()
				return
			}
			for _, way := range [][2]net.Conn{{client, inner}, {inner, client}} {
				running.Go(func() {
					_, _ = io.Copy(way[1], pipe{way[0], p})
					_ = way[1].Close()
				})
			}
		}
	})
	t.Cleanup(func() {
		p.goesOn()
		_ = front.Close()
		server.Stop()
		running.Wait()
	})
	return p
}

// connect returns clients of the places, as an exporter with the middleware makes them.
func connect(t *testing.T, s started, places ...*place) []plogotlp.GRPCClient {
	t.Helper()
	return connectWith(t, s, func(config *configgrpc.ClientConfig) { config.TLS.Insecure = true }, places...)
}

func connectWith(t *testing.T, s started, set func(*configgrpc.ClientConfig), places ...*place) []plogotlp.GRPCClient {
	t.Helper()
	id := component.NewID(metadata.Type)
	var clients []plogotlp.GRPCClient
	for _, p := range places {
		config := configgrpc.NewDefaultClientConfig()
		config.Endpoint = p.address
		set(&config)
		config.Middlewares = []configmiddleware.Config{{ID: id}}
		conn, err := config.ToClientConn(t.Context(), map[component.ID]component.Component{id: s.guard}, componentSettings(s))
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, conn.Close()) })
		clients = append(clients, plogotlp.NewGRPCClient(conn))
	}
	return clients
}

func componentSettings(s started) component.TelemetrySettings {
	return s.telemetry.NewTelemetrySettings()
}

func failingOverSoon(t *testing.T) started {
	t.Helper()
	config := NewFactory().CreateDefaultConfig().(*Config)
	config.FailoverAfter = time.Second
	return startWith(t, config)
}

func export(t *testing.T, client plogotlp.GRPCClient) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := client.Export(ctx, nested(t, 1))
	return err
}

func (s started) assertDown(t *testing.T, n int64) {
	t.Helper()
	metadatatest.AssertEqualExtensionMlGuardEndpointsDown(t, s.telemetry, []metricdata.DataPoint[int64]{{
		Value: n, Attributes: attribute.NewSet(attribute.String("extension", "ml_guard")),
	}}, metricdatatest.IgnoreTimestamp())
}

// What is for an endpoint that hangs goes to another one that never had a call, in the
// same call, and comes back when the endpoint answers.
func TestAnotherEndpointStandsIn(t *testing.T) {
	s := failingOverSoon(t)
	hangs, other := newPlace(t), newPlace(t)
	clients := connect(t, s, hangs, other)
	require.NoError(t, export(t, clients[0]))
	s.assertDown(t, 0)

	hangs.stopped()
	require.NoError(t, export(t, clients[0]))
	assert.Equal(t, []int{1, 1}, []int{hangs.count(), other.count()})
	s.assertDown(t, 1)
	require.NoError(t, export(t, clients[0]))
	assert.Equal(t, 2, other.count())

	hangs.goesOn()
	require.Eventually(t, func() bool {
		before := other.count()
		return export(t, clients[0]) == nil && other.count() == before
	}, time.Minute, 50*time.Millisecond)
	s.assertDown(t, 0)
}

// So does what is for an address at which nobody is, which an exporter sends again.
func TestAnotherEndpointStandsInForADeadAddress(t *testing.T) {
	s := failingOverSoon(t)
	free, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	dead := &place{address: free.Addr().String()}
	require.NoError(t, free.Close())
	other := newPlace(t)
	clients := connect(t, s, dead, other)
	require.Eventually(t, func() bool { return export(t, clients[0]) == nil }, time.Minute, 50*time.Millisecond)
	assert.Equal(t, 1, other.count())
}

// An endpoint that refuses is not down: its load would come upon the others.
func TestAnEndpointThatRefusesKeepsWhatIsForIt(t *testing.T) {
	s := failingOverSoon(t)
	refuses, other := newPlace(t), newPlace(t)
	refuses.refuses = status.Error(codes.Unavailable, "full")
	clients := connect(t, s, refuses, other)
	until := time.Now().Add(3 * s.failover.after)
	for time.Now().Before(until) {
		require.Equal(t, codes.Unavailable, status.Code(export(t, clients[0])))
	}
	assert.Zero(t, other.count())
	s.assertDown(t, 0)
}

// What is for an endpoint that greets and answers nothing goes to another one, until it is
// tried again. One call that takes long is no reason.
func TestAnotherEndpointStandsInForOneThatAnswersNothing(t *testing.T) {
	s := failingOverSoon(t)
	silent, other := newPlace(t), newPlace(t)
	clients := connect(t, s, silent, other)
	require.NoError(t, export(t, clients[0]))

	const method = "/opentelemetry.proto.collector.logs.v1.LogsService/Export"
	again := silent.answersNobody()
	results := make(chan error, 3)
	go func() { results <- export(t, clients[0]) }()
	require.Eventually(t, func() bool {
		s.failover.mu.Lock()
		defer s.failover.mu.Unlock()
		e := s.failover.endpoints[silent.address]
		return e.suspected && len(e.asked[method]) == 1
	}, time.Minute, 50*time.Millisecond)
	require.Eventually(t, func() bool {
		s.failover.mu.Lock()
		defer s.failover.mu.Unlock()
		return !s.failover.endpoints[silent.address].suspected
	}, time.Minute, 50*time.Millisecond, "one call that takes long is no failure")
	s.assertDown(t, 0)
	again()
	require.NoError(t, <-results)
	assert.Zero(t, other.count())

	again = silent.answersNobody()
	for range 3 {
		go func() { results <- export(t, clients[0]) }()
	}
	for range 3 {
		require.NoError(t, <-results)
	}
	assert.Equal(t, 3, other.count())
	s.assertDown(t, 1)
	again()
	// After a while it is tried again.
	s.failover.mu.Lock()
	e := s.failover.endpoints[silent.address]
	e.asked[method][1] = e.asked[method][1].Add(-trialAfter)
	s.failover.mu.Unlock()
	require.Eventually(t, func() bool {
		before := other.count()
		return export(t, clients[0]) == nil && other.count() == before
	}, time.Minute, 50*time.Millisecond)
	s.assertDown(t, 0)
}

// So it is with TLS, whose name is that of a certificate.
func TestAnotherEndpointStandsInWithTLS(t *testing.T) {
	s := failingOverSoon(t)
	folder := t.TempDir()
	hangs, other := newPlaceWith(t, grpc.Creds(certificate(t, folder))), newPlaceWith(t, grpc.Creds(certificate(t, folder)))
	secured := func(config *configgrpc.ClientConfig) {
		config.TLS = configtls.ClientConfig{ServerName: "gateways"}
		config.TLS.CAFile = filepath.Join(folder, "ca.crt")
	}
	clients := connectWith(t, s, secured, hangs, other)
	require.NoError(t, export(t, clients[0]))
	hangs.stopped()
	require.NoError(t, export(t, clients[0]))
	assert.Equal(t, []int{1, 1}, []int{hangs.count(), other.count()})
	hangs.goesOn()
	require.Eventually(t, func() bool {
		before := other.count()
		return export(t, clients[0]) == nil && other.count() == before
	}, time.Minute, 50*time.Millisecond)
	s.assertDown(t, 0)
}

// certificate makes a certificate for gateways, or uses the folder's.
func certificate(t *testing.T, folder string) credentials.TransportCredentials {
	t.Helper()
	certFile, keyFile := filepath.Join(folder, "ca.crt"), filepath.Join(folder, "tls.key")
	if _, err := os.Stat(certFile); err != nil {
		key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		require.NoError(t, err)
		own := &x509.Certificate{
			SerialNumber: big.NewInt(1), DNSNames: []string{"gateways"}, IsCA: true, BasicConstraintsValid: true,
			NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		}
		signed, err := x509.CreateCertificate(rand.Reader, own, own, key.Public(), key)
		require.NoError(t, err)
		keyBytes, err := x509.MarshalPKCS8PrivateKey(key)
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: signed}), 0o600))
		require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyBytes}), 0o600))
	}
	creds, err := credentials.NewServerTLSFromFile(certFile, keyFile)
	require.NoError(t, err)
	return creds
}

// If all hang, calls wait for their own, and arrive when it answers.
func TestAllEndpointsHang(t *testing.T) {
	s := failingOverSoon(t)
	one, other := newPlace(t), newPlace(t)
	clients := connect(t, s, one, other)
	one.stopped()
	other.stopped()
	results := make(chan error, 2)
	for _, client := range clients {
		go func() { results <- export(t, client) }()
	}
	require.Eventually(t, func() bool {
		s.failover.mu.Lock()
		defer s.failover.mu.Unlock()
		return s.failover.endpoints[one.address].down && s.failover.endpoints[other.address].down
	}, time.Minute, 50*time.Millisecond)
	one.goesOn()
	other.goesOn()
	for range clients {
		assert.NoError(t, <-results)
	}
}
