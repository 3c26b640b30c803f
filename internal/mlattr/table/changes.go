package table

// ChangeKey says which change an attribute shows when its value is another.
type ChangeKey struct {
	// Source is the key of the attribute.
	Source string
	// Kind is one of the Change values.
	Kind string
	// Name is the setting or the framework, or which part of an image the value
	// is: see the Image values. It is empty for other kinds.
	Name string
	// NameKey is the key of the attribute of the same resource that has the Name,
	// or is "".
	NameKey string `yaml:"name_key"`
}
