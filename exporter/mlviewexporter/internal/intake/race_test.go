//go:build race

package intake_test

const raceEnabled = true
