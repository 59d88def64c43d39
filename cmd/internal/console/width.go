package console

import (
	"os"
	"strconv"

	"golang.org/x/term"
)

// Width is how many characters fit a line of the stream: those of the terminal, or COLUMNS; 0: there is no limit, as
// for a program that reads lines.
func Width(stream any) int {
	if f := Terminal(stream); f != nil {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return w
		}
	}
	w, err := strconv.Atoi(os.Getenv("COLUMNS"))
	if err != nil || w < 0 {
		return 0
	}
	return w
}
