package exception

import (
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr"
)

const header = "Traceback (most recent call last)"

// unwrapRay removes one RayTaskError(X). Ray raises it where a task's result is
// asked for; its message is the traceback of the process that the task ran
// in. That begins with a line about the process and ends with X's own message.
func unwrapRay(e Exception) (Exception, bool) {
	class, wrapped := mlattr.UnwrapRay(e.Type)
	if !wrapped {
		return e, false
	}
	var (
		at     int  // where the line begins
		frames = -1 // where the frames of the innermost task begin
		raised = -1 // where the line with X's message begins
	)
	for line := range strings.Lines(e.Message) {
		text := strings.TrimRight(line, "\r\n")
		named, _, _ := strings.Cut(text, ":")
		switch {
		case strings.Contains(text, "ray::") && strings.Contains(text, "(pid="):
			frames, raised = at+len(line), -1
		case isDotted(named) && mlattr.ClassName(named) == mlattr.ClassName(class):
			raised = at
		}
		at += len(line)
	}
	inner := Exception{Type: class, Message: e.Message, Stack: e.Stack}
	if raised >= 0 {
		named, message, _ := strings.Cut(e.Message[raised:], ":")
		if len(named) > len(class) {
			inner.Type = strings.TrimSpace(named) // with its module
		}
		inner.Message = strings.TrimSpace(message)
	}
	if frames >= 0 && frames < len(e.Message) {
		inner.Stack = header + ":\n" + e.Message[frames:]
	}
	return inner, true
}
