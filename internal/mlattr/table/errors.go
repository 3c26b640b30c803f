package table

// PrintedError is an error as a client's runtime prints it.
type PrintedError struct {
	// Type is the class and Message the text; either may be empty.
	Type, Message string
	// Stack is the stack trace, or "".
	Stack string
}
