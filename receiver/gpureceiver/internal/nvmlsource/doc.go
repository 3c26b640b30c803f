// Package nvmlsource reads the GPUs of this host through the NVIDIA Management
// Library.
//
// The library can end or block the process in several ways, and this package
// protects it from them. Calling a symbol that the library lacks ends the
// process, so that each symbol is looked up first. A call into a hanging driver
// never returns and cannot be cancelled, so that calls are made one after the other,
// and a goroutine is abandoned when its call takes too long. Nothing is ever written
// to the driver.
package nvmlsource
