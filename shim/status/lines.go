package status

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"github.com/muster-agent/muster/shim/logtimes"
	"github.com/muster-agent/muster/shim/tail"
)

// LogQuery says which lines of a log are asked for. All of its conditions hold together.
type LogQuery struct {
	Tail   int       // the last lines over all rotated files; -1: all
	Since  time.Time // those that begin then or later, where times are known; zero: all
	Follow bool
}

// LogLine is a line of a log with its newline, or a part of one that is very long or has none yet.
type LogLine struct {
	At   time.Time // when its first byte had been written, to the second; zero: unknown
	Text []byte
}

// mostLine is how much of a line is held, in bytes.
const mostLine = 1 << 20

// Lines hands on the lines of a log, of its rotated files first. With Follow it goes on until ctx is done. The error is
// fs.ErrNotExist where there is no log.
func (q LogQuery) Lines(ctx context.Context, path string, show func(LogLine) error) error {
	found := false
	for part, from := range tail.Parts(path, q.Tail) {
		w := &lineCutter{show: show, at: from, since: q.Since}
		follow := q.Follow && part == path
		if info, err := os.Lstat(part); err == nil {
			w.file, w.now = logtimes.Read(path, info), info.Size()
			if start := w.file.Since(q.Since); !q.Since.IsZero() && start > from {
				w.at, w.middle = start-1, true // the line that is under way there began earlier
			}
		}
		w.live = follow
		err := Follow(ctx, part, w.at, follow, w)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			found = true
			err = errors.Join(err, w.flush())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if !found {
		return fs.ErrNotExist
	}
	return nil
}

// lineCutter cuts what is written to it into lines.
type lineCutter struct {
	show   func(LogLine) error
	file   logtimes.File
	since  time.Time
	at     int64 // offset of the next byte
	now    int64 // what lies behind is written now, if live
	live   bool
	middle bool // up to the next newline it is a line that began earlier
	rest   []byte
	begun  time.Time // of rest
}

func (w *lineCutter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		part, whole := b, false
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			part, whole = b[:i+1], true
		}
		if len(w.rest)+len(part) > mostLine {
			part, whole = part[:mostLine-len(w.rest)], false
		}
		if len(w.rest) == 0 {
			w.begun = w.time()
		}
		w.rest = append(w.rest, part...)
		w.at += int64(len(part))
		b = b[len(part):]
		if whole || len(w.rest) == mostLine {
			if err := w.tell(whole); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

// time is that of the next byte.
func (w *lineCutter) time() time.Time {
	if w.live && w.at >= w.now {
		return Stamp(time.Now())
	}
	return w.file.At(w.at)
}

func (w *lineCutter) tell(whole bool) error {
	line := LogLine{w.begun, w.rest}
	skip := w.middle || !w.since.IsZero() && !line.At.IsZero() && line.At.Before(w.since)
	w.middle = w.middle && !whole
	w.rest = nil
	if skip {
		return nil
	}
	return w.show(line)
}

func (w *lineCutter) flush() error {
	if len(w.rest) == 0 {
		return nil
	}
	return w.tell(false)
}

// linesType is the content type of lines with their times: before each stand its time (milliseconds since 1970, 0:
// unknown) and its length, in digits.
const linesType = "application/vnd.muster.lines"

// sendSize is how much is sent at once, in bytes.
const sendSize = 64 << 10

// send sends the lines of a log with their times.
func (q LogQuery) send(ctx context.Context, path string, to *flusher) error {
	out := bufio.NewWriterSize(to, sendSize)
	err := q.Lines(ctx, path, func(l LogLine) error {
		at := int64(0)
		if !l.At.IsZero() {
			at = l.At.UnixMilli()
		}
		fmt.Fprintf(out, "%d %d\n", at, len(l.Text)) // an error stays with out
		_, err := out.Write(l.Text)
		if q.Follow && err == nil {
			err = out.Flush()
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, out.Flush())
}

// Lines is LogQuery.Lines of a log that the agent has (stdout, stderr, agent). An agent of an earlier build sends its
// lines without times.
func (c *Client) Lines(ctx context.Context, name string, q LogQuery, show func(LogLine) error) error {
	ask := url.Values{
		"tail": {strconv.Itoa(q.Tail)}, "follow": {strconv.FormatBool(q.Follow)}, "times": {"true"},
	}
	if !q.Since.IsZero() {
		ask.Set("since", q.Since.UTC().Format(time.RFC3339Nano))
	}
	r, err := c.send(ctx, http.MethodGet, "/v1/logs/"+url.PathEscape(name)+"?"+ask.Encode(), nil)
	if err != nil {
		return err
	}
	defer func() { _ = r.Body.Close() }() // it was only read
	if r.Header.Get("Content-Type") != linesType {
		w := &lineCutter{show: show}
		_, err := io.Copy(w, r.Body)
		return errors.Join(err, w.flush())
	}
	in := bufio.NewReader(r.Body)
	for {
		at, size, err := lineHead(in)
		switch {
		case errors.Is(err, io.EOF) || err != nil && q.Follow: // an agent that ends breaks the connection off
			return nil
		case err != nil:
			return fmt.Errorf("agent at %s: %w", c.path, err)
		}
		line := LogLine{Text: make([]byte, size)}
		if at > 0 {
			line.At = time.UnixMilli(at).UTC()
		}
		if _, err := io.ReadFull(in, line.Text); err != nil {
			return fmt.Errorf("agent at %s: %w", c.path, err)
		}
		if err := show(line); err != nil {
			return err
		}
	}
}

// lineHead reads what stands before a line.
func lineHead(in *bufio.Reader) (at int64, size int, err error) {
	head, err := in.ReadSlice('\n')
	if err != nil {
		return 0, 0, err
	}
	first, second, _ := bytes.Cut(bytes.TrimSuffix(head, []byte("\n")), []byte(" "))
	if at, err = strconv.ParseInt(string(first), 10, 64); err == nil {
		size, err = strconv.Atoi(string(second))
	}
	if err == nil && (size < 0 || size > mostLine) {
		err = fmt.Errorf("a line of %d bytes, want at most %d", size, mostLine)
	}
	return at, size, err
}
