package reproductions

import (
	"fmt"
	"regexp"
	"strings"
)

var (
	// bareWord is an argument that needs no quotes, shownWord one that a terminal shows.
	bareWord  = regexp.MustCompile(`^[@%+=:,./_0-9A-Za-z-]+$`)
	shownWord = regexp.MustCompile(`^[ -~]*$`)
)

// shellQuote quotes an argument so that a shell reads it as one word and a
// terminal shows all of it. If a terminal would not show it as it is, it uses
// the $'…' form of POSIX 2024, which bash, zsh and ksh read; otherwise single
// quotes, or none if they are not needed.
func shellQuote(argument string) string {
	switch {
	case bareWord.MatchString(argument):
		return argument
	case shownWord.MatchString(argument):
		return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
	}
	var out strings.Builder
	out.WriteString("$'")
	for i := range len(argument) {
		switch c := argument[i]; {
		case c == '\'' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c < 0x20 || c > 0x7e:
			// Octal escapes end after three digits in every shell; a hex
			// escape would swallow a digit that follows it.
			fmt.Fprintf(&out, `\%03o`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteString("'")
	return out.String()
}
