package status

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// timedLog is a log of two files with marks, the newer one with more bytes than marks.
func timedLog(t *testing.T) (dir string, first time.Time) {
	t.Helper()
	dir, first = t.TempDir(), time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	path := filepath.Join(dir, "stdout.log")
	marks := ""
	for i, file := range []struct{ name, text string }{{path + ".1", "one\ntwo\n"}, {path, "three\nfour\nrest"}} {
		if err := os.WriteFile(file.name, []byte(file.text), 0o600); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file.name)
		if err != nil {
			t.Fatal(err)
		}
		inode := info.Sys().(*syscall.Stat_t).Ino
		begun := strings.Index(file.text, "\n") + 1
		for n, size := range []int{begun, strings.LastIndex(file.text, "\n") + 1} {
			marks += fmt.Sprintln(inode, size, first.Add(time.Duration(2*i+n)*time.Second).UnixMilli())
		}
		if err := os.Chtimes(file.name, first, first.Add(9*time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(path+".times", []byte(marks), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, first
}

// Lines come with their times, from the file and from an agent, byte for byte.
func TestLines(t *testing.T) {
	dir, first := timedLog(t)
	path := filepath.Join(dir, "stdout.log")
	agent := httptest.NewServer(Handler(Source{LogDir: dir}))
	defer agent.Close()
	client := &Client{base: agent.URL, http: agent.Client()}
	for name, c := range map[string]struct {
		q    LogQuery
		want string
	}{
		"all":                      {LogQuery{Tail: -1}, "0:one\n 1:two\n 2:three\n 3:four\n 9:rest"},
		"the last":                 {LogQuery{Tail: 2}, "3:four\n 9:rest"},
		"since a line":             {LogQuery{Tail: -1, Since: first.Add(time.Second)}, "1:two\n 2:three\n 3:four\n 9:rest"},
		"since the middle":         {LogQuery{Tail: -1, Since: first.Add(2500 * time.Millisecond)}, "3:four\n 9:rest"},
		"since, of the last lines": {LogQuery{Tail: 1, Since: first}, "9:rest"},
		"since the future":         {LogQuery{Tail: -1, Since: first.Add(time.Hour)}, ""},
	} {
		for where, lines := range map[string]func(func(LogLine) error) error{
			"here":  func(show func(LogLine) error) error { return c.q.Lines(t.Context(), path, show) },
			"there": func(show func(LogLine) error) error { return client.Lines(t.Context(), "stdout", c.q, show) },
		} {
			var got []string
			err := lines(func(l LogLine) error {
				got = append(got, fmt.Sprintf("%.0f:%s", l.At.Sub(first).Seconds(), l.Text))
				return nil
			})
			if text := strings.Join(got, " "); text != c.want || err != nil {
				t.Errorf("%s, %s: got %q, %v, want %q", name, where, text, err, c.want)
			}
		}
	}
}

// A line that is under way at `since` began before it. A line without marks has no time, and is not left out.
func TestLinesUnknown(t *testing.T) {
	dir, first := timedLog(t)
	path := filepath.Join(dir, "stdout.log")
	if err := os.Remove(path + ".times"); err != nil {
		t.Fatal(err)
	}
	n := 0
	err := LogQuery{Tail: -1, Since: first}.Lines(t.Context(), path, func(l LogLine) error {
		if n++; !l.At.IsZero() {
			t.Errorf("%q has the time %s", l.Text, l.At)
		}
		return nil
	})
	if n != 5 || err != nil {
		t.Errorf("got %d lines, %v, want 5", n, err)
	}
	err = LogQuery{Tail: -1}.Lines(t.Context(), filepath.Join(dir, "none.log"), nil)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no log: got %v", err)
	}
}

// What comes while a log is followed has the time at which it came.
func TestLinesFollow(t *testing.T) {
	dir, _ := timedLog(t)
	path := filepath.Join(dir, "stdout.log")
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	began := Stamp(time.Now())
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first := true
	err = LogQuery{Tail: 2, Follow: true}.Lines(ctx, path, func(l LogLine) error {
		if first {
			first = false
			_, err := f.WriteString("\nmore\n")
			return err
		}
		if string(l.Text) == "more\n" {
			if l.At.Before(began) {
				t.Errorf("came at %s, before %s", l.At, began)
			}
			cancel()
			return nil
		}
		return nil
	})
	if err != nil || !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("the line did not come: %v", err)
	}
}

// A line longer than what is held comes in parts, and an agent of an earlier build sends none with times.
func TestLinesInParts(t *testing.T) {
	long := strings.Repeat("x", mostLine+5) + "\ny\n"
	old := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, long) }))
	defer old.Close()
	var got []int
	client := &Client{base: old.URL, http: old.Client()}
	err := client.Lines(t.Context(), "stdout", LogQuery{Tail: -1}, func(l LogLine) error {
		got = append(got, len(l.Text))
		return nil
	})
	if fmt.Sprint(got) != fmt.Sprint([]int{mostLine, 6, 2}) || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestLinesRefused(t *testing.T) {
	w := httptest.NewRecorder()
	Handler(Source{LogDir: t.TempDir()}).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet,
		"/v1/logs/stdout?since=yesterday", nil))
	if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "a time of RFC 3339") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}
