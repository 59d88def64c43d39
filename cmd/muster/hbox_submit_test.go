package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/submit"
)

// Options that are muster's own are read only before HBox's: behind them the same words are HBox's, or the command's.
func TestOwnOptions(t *testing.T) {
	cmd := newHBoxSubmit(console.Streams{})
	for line, want := range map[string]string{
		"--app-id d1 --json --work-dir=w --worker-num 2 --json": "--app-id d1 --json --work-dir=w",
		"--worker-num 2 --app-id d1":                            "",
		"--output /o#m --app-id d1":                             "",
		"--help":                                                "",
		"-json":                                                 "",
		"--app-id":                                              "--app-id",
		"":                                                      "",
	} {
		args := strings.Fields(line)
		own, rest := ownOptions(cmd, args)
		if got := strings.Join(own, " "); got != want {
			t.Errorf("%q: own %q, want %q", line, got, want)
		}
		if got := slices.Concat(own, rest); !slices.Equal(got, args) {
			t.Errorf("%q: %q, want no word lost", line, got)
		}
	}
}

func TestProgressLine(t *testing.T) {
	workers := []registry.Instance{{Component: "chiefworker"}, {Component: "worker"}, {Component: "worker", Index: 1}}
	for _, test := range []struct {
		said map[string]float64
		want string
	}{
		{nil, ""},
		{map[string]float64{"ps-0": 1}, ""},
		{map[string]float64{"worker-0": 0}, "reporter progress:0.00%"},
		{map[string]float64{"worker-0": 0.5, "chiefworker-0": 1}, "reporter progress:50.00%"},
		{map[string]float64{"worker-0": 1, "worker-1": 1, "chiefworker-0": 1}, "reporter progress:100.00%"},
	} {
		if got := submit.HBoxProgress(test.said, workers); got != test.want {
			t.Errorf("%v: %q, want %q", test.said, got, test.want)
		}
	}
}

func TestPageLines(t *testing.T) {
	got := submit.HBoxPages("worker-0", map[string]string{
		"worker.url": "http://h1:5000", "worker.board": "http://h1:6006", "worker.host_port": "h1:5000",
	})
	want := []string{"board url: http://h1:6006", "Received digits server url from worker-0", "digits server url: http://h1:5000"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// In HBox's numbers a verdict that is no success is told from all that kept one from coming; who leaves a job does not fail it.
func TestHBoxCodes(t *testing.T) {
	for _, tt := range []struct {
		err  error
		code int
	}{
		{nil, 0},
		{exit.Silent{Code: 3}, 2},
		{exit.Silent{Code: exit.Interrupted}, 2},
		{exit.Silent{Code: exit.CtrlC}, 2}, // stopped by Ctrl-C, with its verdict
		{errors.Join(exit.Silent{Code: 1}, submit.ErrNobody), 1},
		{errors.Join(exit.Silent{Code: exit.CtrlC}, submit.ErrLeft), exit.CtrlC},
		{exit.With(exit.CtrlC, errors.New("interrupted")), exit.CtrlC},
	} {
		if got := exit.CodeOf(hboxCode(tt.err)); got != tt.code {
			t.Errorf("%v: got %d, want %d", tt.err, got, tt.code)
		}
	}
}
