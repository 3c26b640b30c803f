package workload

// Attributes are optional attributes of mdatagen's builders. What is unknown is left
// out.
type Attributes[Option any] []Option

// Text adds an attribute, unless its value is empty.
func (a *Attributes[Option]) Text(value string, attribute func(string) Option) {
	if value != "" {
		*a = append(*a, attribute(value))
	}
}

// Number adds an attribute whose value is known.
func (a *Attributes[Option]) Number(value Number, attribute func(int64) Option) {
	if value.Known {
		*a = append(*a, attribute(value.Value))
	}
}
