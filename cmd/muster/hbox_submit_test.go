package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
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
		if got := progressLine(test.said, workers); got != test.want {
			t.Errorf("%v: %q, want %q", test.said, got, test.want)
		}
	}
}
