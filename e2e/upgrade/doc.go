// Package upgrade tests that one version of the collector takes over from another:
// its state, its configuration, and its place between agents and gateways.
//
// testdata has state that earlier versions wrote. After a change of what is written,
// add to it, and keep what is there:
//
//	go test -C e2e ./upgrade -run TestPinnedState -write NAME
package upgrade
