// Package helm tests the Helm chart in deploy/helm: what it renders for each file
// of values in its ci folder, that Kubernetes would read it, that no pod has a
// privilege too many, and that the built collector starts with the configuration
// and the environment of each pod. `make e2e-helm` builds helm and kubeconform
// first. No cluster takes part.
package helm
