package console

import (
	"bytes"
	"io"
	"strings"

	"github.com/muster-agent/muster/shim/wording"
)

// Output returns a writer for what a program printed: as it is, but to a terminal only text, its colours and what
// draws a line over again (\r).
func Output(to io.Writer) io.Writer {
	if Terminal(to) == nil {
		return Raw(to)
	}
	return &output{to: Raw(to)}
}

type output struct {
	to   io.Writer
	half []byte // the beginning of a character or colour that the last Write ended in
}

// mostColor is how long a colour is at most: more bytes than that are not waited for.
const mostColor = 32

func (o *output) Write(text []byte) (int, error) {
	whole := append(o.half, text...)
	end := unfinished(whole)
	if i := bytes.LastIndexByte(whole, '\x1b'); i >= 0 && len(whole)-i <= mostColor &&
		len(bytes.Trim(whole[i+1:], "[0123456789;")) == 0 {
		end = min(end, i)
	}
	o.half = append([]byte(nil), whole[end:]...)
	lines := strings.Split(string(whole[:end]), "\r")
	for i, line := range lines {
		lines[i] = wording.Colored(line)
	}
	if _, err := io.WriteString(o.to, strings.Join(lines, "\r")); err != nil {
		return 0, err
	}
	return len(text), nil
}
