// Package mlstateextension is the ml_state extension. It has what the components of
// this project in one collector tell each other, and a converter that adds it to
// configurations that do not name it.
package mlstateextension

//go:generate mdatagen metadata.yaml
