package text

// The forms of numbers and texts that other documents share with the text form. A
// number that is nil is written as an empty text.

// Printable returns a text from outside in a form that cannot control a terminal,
// turn the direction of a line or hide anything: such characters are escaped. A text
// of more than 400 characters is cut and ends with an ellipsis.
func Printable(text string) string { return printable(text) }

// Escape is Printable for a text that must not be cut, such as a command.
func Escape(text string) string { return escape(text) }

// Number writes a value with about three digits that matter.
func Number(value *float64) string { return trimmed(value) }

// Count writes a whole number, in full up to 99,999.
func Count(value *float64) string { return count(value) }

// Percent writes a fraction as a percentage.
func Percent(fraction *float64) string { return percent(fraction) }

// Seconds writes a duration in seconds in the unit that suits it.
func Seconds(value *float64) string { return seconds(value) }

// GiB writes a size in bytes as GiB.
func GiB(bytes *float64) string { return memory(bytes, nil) }

// Change writes by how much a value differs from another one, as a percentage.
func Change(value, usual *float64) string { return change(value, usual) }

// Words writes a name of the model, such as looks_hung, as words.
func Words(name string) string { return words(name) }
