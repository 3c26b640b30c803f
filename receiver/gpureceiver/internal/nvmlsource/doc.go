// Package nvmlsource reads the GPUs of this host through the NVIDIA Management
// Library.
//
// The library is full of ways to end or to block the process, and this
// package exists to survive them. A symbol that the library does not have
// ends the process when it is called, so that each is looked up first. A call
// into a wedged driver never returns and cannot be cancelled, so that all
// calls are made by one goroutine, which is left behind when a call takes too
// long. Nothing is ever written to the driver.
package nvmlsource
