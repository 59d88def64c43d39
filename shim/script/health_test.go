package script

import "testing"

func done(code int) Result { return Result{Code: &code, Why: "said why"} }

// TestHealth: a word per answer: y passes, n fails, t times out, x could not be run, - has no STATUS; S: START has ended with 0.
func TestHealth(t *testing.T) {
	for _, c := range []struct {
		answers        string
		up, dead, deaf bool
	}{
		{answers: "", up: false},
		{answers: "nnnn", up: false},            // START is at work: not up yet is no failure
		{answers: "nny", up: true},              //
		{answers: "yn", up: true},               // one failure is none
		{answers: "ynn", up: true, dead: true},  // the second in a row is the end
		{answers: "ynyn", up: true},             // a pass forgives
		{answers: "Sn", up: false},              //
		{answers: "Snn", up: false, dead: true}, // START is over: it should serve
		{answers: "Snyn", up: true},             //
		{answers: "Synt", up: true, dead: true}, // a hanging STATUS is a failure
		{answers: "-", up: true, deaf: true},    // nothing to ask
		{answers: "yxxx", up: true},             // a full disk is not its fault
		{answers: "ynxn", up: true, dead: true}, // nor does it forgive
		{answers: "Sxx", up: false},             //
		{answers: "ynynynynn", up: true, dead: true},
	} {
		var h Health
		starting, died := true, false
		for _, a := range c.answers {
			if died {
				t.Fatalf("%s: dead before its end", c.answers)
			}
			switch a {
			case 'S':
				starting = false
				continue
			case 'y':
				h = h.Asked(done(0), starting)
			case 'n':
				h = h.Asked(done(1), starting)
			case 't':
				h = h.Asked(Result{TimedOut: true, Why: "hangs"}, starting)
			case 'x':
				h = h.Asked(Result{NotRun: true, Why: "no room"}, starting)
			case '-':
				h = h.Asked(Result{Absent: true}, starting)
			}
			died = h.Dead()
		}
		if h.Up != c.up || h.Dead() != c.dead || h.Deaf != c.deaf {
			t.Errorf("%s: got up %t, dead %t, deaf %t; want %t, %t, %t", c.answers, h.Up, h.Dead(), h.Deaf, c.up, c.dead, c.deaf)
		}
	}
}

func TestAbsent(t *testing.T) {
	for text, want := range map[string]bool{
		`{"muster": {"method": "absent"}}`: true, `{"muster": {"method": "there"}}`: false, `{}`: false, ``: false, `[`: false, `{"muster": 3}`: false,
	} {
		if got := Absent([]byte(text)); got != want {
			t.Errorf("%s: got %t", text, got)
		}
	}
}

func TestLastLine(t *testing.T) {
	for text, want := range map[string]string{"": "", "a\n": "a", "a\nb\n\n  \n": "b", "  x  ": "x"} {
		if got := LastLine([]byte(text)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
