// Package anomalies measures how well ml_metrics finds what is wrong, and how often
// it reports something where nothing is: it sends the telemetry of simulated fleets
// through the connector's public interface and reads the problems that come out.
//
// The tests run in the virtual time of testing/synctest, in which a week takes
// minutes: the connector's own timer emits, as in a collector. What the clients send
// is that of cmd/mlgen; noise.go has the noise, plan.go what is planted. docs/evidence/anomalies.md
// is the result, written by `make anomalies UPDATE=1`.
package anomalies
