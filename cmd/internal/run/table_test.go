package run

import (
	"bytes"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/console/consoletest"
	"github.com/muster-agent/muster/shim/status"
)

// On a terminal a run is a table that is drawn in its own place, fits the window, and leaves messages
// standing above it.
func TestTableOnATerminal(t *testing.T) {
	t.Setenv("TERM", "xterm")
	t.Setenv("NO_COLOR", "")
	master, end := consoletest.Terminal(t, 20, 6)
	var link func(string)
	page := func(tell func(string)) (func(), error) { link = tell; return func() {}, nil }
	flags := &Options{shown: shown{Output: OutputAuto, Page: page}}
	r := &runner{appID: "d1", flags: flags, streams: console.Streams{Err: end, Out: io.Discard}}
	if !r.tabular() {
		t.Error("got lines, want a table on a terminal")
	}
	lines := []string{"INSTANCE PHASE", "ps-0 running and far too long for this window", "worker-0", "worker-1", "worker-2", "worker-3"}
	r.draw(lines)
	r.draw(lines)
	r.say("d1: stopping")
	r.draw(lines[:2])
	if err := r.openPage(); err != nil {
		t.Fatal(err)
	}
	link("http://next")
	r.draw(lines[:1])
	if err := end.Close(); err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	_, _ = io.Copy(&shown, master) // EIO is how a terminal ends
	first := "\x1b[2KINSTANCE PHASE\n\x1b[2Kps-0 \x1b[32mrunning\x1b[0m and far\n\x1b[2Kworker-0\n\x1b[2Kworker-1\n\x1b[2K… and 2 more: muster\n"
	want := first + "\x1b[5A" + first + "d1: stopping\n" + "\x1b[2KINSTANCE PHASE\n\x1b[2Kps-0 \x1b[32mrunning\x1b[0m and far\n" +
		"page http://next\n\x1b[2KINSTANCE PHASE\n"
	if got := strings.ReplaceAll(shown.String(), "\r\n", "\n"); got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	pipe, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	defer write.Close()
	r.streams.Err = write
	if r.tabular() {
		t.Error("got a table, want lines through a pipe")
	}
}

// The last words of an agent are those on its failure: not what it does every day, and no warning of the definition.
func TestLastWords(t *testing.T) {
	said := `warning: metainfo.xml#/application/configFiles/2: got an unknown element, want none
time=2026-01-02T03:04:05Z level=INFO msg=claimed instance=worker-0
time=2026-01-02T03:04:05Z level=WARN msg="planned with a warning" warning="resources.json#/components/worker: got 4"
{"time":"2026-01-02T03:04:05Z","level":"WARN","msg":"planned with a warning","warning":"resources.json#/components/worker: got 4"}
time=2026-01-02T03:04:06Z level=ERROR msg="guard has ended unasked"
`
	want := []string{`time=2026-01-02T03:04:06Z level=ERROR msg="guard has ended unasked"`}
	if got := without(said, everyday, reportLines); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What a person should mend stands below the table, and as a line of its own where there is none.
func TestWarningsAreShown(t *testing.T) {
	row := status.Instance{Identity: status.Identity{Instance: "worker-0"}, Phase: "running", Warnings: []status.Warning{{Kind: "checkpoints", Text: "no room"}}}
	lines := tableText([]status.Instance{row, {Identity: status.Identity{Instance: "worker-1"}}})
	if len(lines) != 4 || lines[3] != "warning: worker-0: no room" {
		t.Errorf("got %q, want the warning as the last line", lines)
	}
	for line, want := range map[string]string{
		`{"event":"warning","from":"running","to":"running","cause":"no room"}`:  "muster: warning: no room",
		`{"event":"mended","from":"running","to":"running","cause":"all right"}`: "muster: all right",
	} {
		if got := transitionLine(line); got != want {
			t.Errorf("%s: got %q, want %q", line, got, want)
		}
	}
}
