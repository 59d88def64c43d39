package appdef

import (
	"strings"
	"testing"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]Seconds{
		"0": 0, "90": 90, "90s": 90, "5m": 300, "1h30m": 5400, "1.5": 1.5, "250ms": 0.25, "0s": 0, ".5": 0.5, "2d": 172800, "1.5d": 129600,
		"": -1, "x": -1, "-5": -1, "-5s": -1, "+5": -1, "+5s": -1, "5 m": -1, "d": -1, "-1d": -1, "1h2d": -1, "4000d": -1, "1e3": -1, "NaN": -1, "Inf": -1, "1h30": -1, ".": -1, "1.2.3": -1,
		"999999999999": -1, "9999999h": -1,
	} {
		got, err := ParseDuration(text)
		if want < 0 {
			if err == nil {
				t.Errorf("ParseDuration(%q) = %v, want an error", text, got)
			}
			continue
		}
		if got != want || err != nil {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestParseDurationRange(t *testing.T) {
	for text, want := range map[string][2]Seconds{"1s..1m": {1, 60}, "5": {5, 5}, "0..0": {0, 0}} {
		low, high, err := parseDurationRange(text)
		if low != want[0] || high != want[1] || err != nil {
			t.Errorf("ParseDurationRange(%q) = %v, %v, %v; want %v", text, low, high, err, want)
		}
	}
	for _, text := range []string{"", "..", "1s..", "..1s", "2s..1s", "1s..2s..3s", "1s-2s"} {
		if low, high, err := parseDurationRange(text); err == nil {
			t.Errorf("ParseDurationRange(%q) = %v, %v; want an error", text, low, high)
		}
	}
}

func TestParseSignal(t *testing.T) {
	for text, want := range map[string]string{"TERM": "TERM", "SIGTERM": "TERM", "term": "TERM", "sigusr1": "USR1", "15": "TERM", "9": "KILL", "31": "SYS"} {
		if got, err := parseSignal(text); got != want || err != nil {
			t.Errorf("ParseSignal(%q) = %q, %v; want %q", text, got, err, want)
		}
	}
	for _, text := range []string{"", "0", "32", "-1", "TREM", "SIG", "SIGSIGTERM"} {
		if got, err := parseSignal(text); err == nil {
			t.Errorf("ParseSignal(%q) = %q, want an error", text, got)
		}
	}
}

func TestNearest(t *testing.T) {
	names := []string{"muster.restart", "muster.restart.budget", "muster.retry", "worker", "ps", "muster.output.*", "muster.side.*"}
	for text, want := range map[string]string{
		"muster.restart.buget": "muster.restart.budget", "muster.resatrt": "muster.restart", "Worker": "worker", "wroker": "worker",
		"muster.restart": "", "xyz": "", "": "", "PS": "ps", "a-very-long-name-that-is-none": "",
		"muster.ouput.model": "muster.output.model", "muster.sied.board.port": "muster.side.board.port", "muster.outputs": "muster.output.*", "muster.env.X": "",
	} {
		if got, _ := Nearest(text, names); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", text, got, want)
		}
	}
}

func TestPointer(t *testing.T) {
	if got := Pointer("a", "yarn.io/gpu", "x~y"); got != "/a/yarn.io~1gpu/x~0y" {
		t.Errorf("got %s", got)
	}
}

func TestQuoteCutsBetweenRunes(t *testing.T) {
	long := "x" + strings.Repeat("é", 100)
	if got, want := Quote(long), `"x`+strings.Repeat("é", 59)+`" and 82 more bytes`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAProblemIsOneLine(t *testing.T) {
	p := Place{File: "f", Pointer: "/a\nb"}.Problem("the\tkey", "one", "")
	if got, want := p.String(), `f#/a\nb: got the\tkey, want one`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
