// Package registry reads the registry of names, the folder registry at the root, by the rules
// of OpenTelemetry Weaver, and holds what components write against it.
//
// Where a weaver is given (-weaver), the tests have it check the registry, too, and what
// components write. It is no part of this repository and needs none to build.
package registry
