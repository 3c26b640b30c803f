//go:build !race

package gpureceiver

// raceEnabled is true where the race detector adds allocations of its own.
const raceEnabled = false
