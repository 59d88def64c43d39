package process

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/ports"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/script"
)

// timer is a fence that knows whether the guard's timer ran out.
type timer struct {
	fence
	fired bool
}

func (t timer) EndedProcess() bool { return t.fired }

// The guard's dead-man timer explains an end by its own kill, and no result that the process came to by itself.
func TestDeadManTimerExplains(t *testing.T) {
	for name, tt := range map[string]struct {
		exit   sandbox.Exit
		fired  bool
		cutOff bool
		class  registry.Class
	}{
		"killed by the guard":                {sandbox.Exit{Signal: 9}, true, true, registry.ClassRegistry},
		"it had ended well":                  {sandbox.Exit{Code: new(0)}, true, false, registry.ClassNone},
		"killed by somebody else":            {sandbox.Exit{Signal: 9}, false, false, registry.ClassNone},
		"its end was not seen, and it fired": {sandbox.Exit{}, true, true, registry.ClassRegistry},
	} {
		p := New(t.Context(), Config{Fence: timer{fired: tt.fired}, Loop: machine.NewAgent(), Ports: ports.NewInstance("a", nil, slog.New(slog.DiscardHandler))})
		if out := p.judge(tt.exit, 0); out.CutOff != tt.cutOff || out.Class != tt.class {
			t.Errorf("%s: cut off %v, class %q; want %v, %q", name, out.CutOff, out.Class, tt.cutOff, tt.class)
		}
	}
}

// The last line on stderr of a START that failed is its reason. What a process that START left wrote last is any line.
func TestStartExplains(t *testing.T) {
	starter, named := script.Owner(""), script.Named
	for name, c := range map[string]struct {
		script *plan.Script
		owner  script.Owner
		stderr string
		exit   sandbox.Exit
		want   string
	}{
		"START fails":                 {&plan.Script{}, starter, "first\nno such table\n", sandbox.Exit{Code: new(4)}, "no such table"},
		"START fails, an older line":  {&plan.Script{}, starter, "", sandbox.Exit{Code: new(4)}, ""},
		"START is killed":             {&plan.Script{}, starter, "no such table\n", sandbox.Exit{Signal: 9}, ""},
		"its daemon fails":            {&plan.Script{}, named, "no such table\n", sandbox.Exit{Code: new(4)}, ""},
		"a program that is no script": {nil, starter, "no such table\n", sandbox.Exit{Code: new(4)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			log := filepath.Join(dir, "stderr.log")
			write := func(text string) {
				if err := os.WriteFile(log, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write("of the attempt before\n")
			p := New(t.Context(), Config{
				Fence: timer{}, Loop: machine.NewAgent(), LogDir: dir, Plan: plan.Plan{Script: c.script},
				Ports: ports.NewInstance("a", nil, slog.New(slog.DiscardHandler)),
			})
			p.begin(1)
			if w := p.watching(); w != nil {
				w.owner = c.owner
			}
			write("of the attempt before\n" + c.stderr)
			if out := p.judge(c.exit, 0); out.Message != c.want {
				t.Errorf("got %q, want %q", out.Message, c.want)
			}
		})
	}
}

// The last output has no part of a secret, wherever the text is cut.
func TestLastOutputHidesSecretsBeforeItIsCut(t *testing.T) {
	const secret = "hunter2hunter2"
	hide := func(text string) string { return strings.ReplaceAll(text, secret, "(secret)") }
	for name, text := range map[string]string{
		"at the end of what is kept": strings.Repeat("x", registry.MostOutput-8) + secret + " and more",
		"at the begin of the window": secret + strings.Repeat("\n", lastWindow-12) + "end",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "stderr.log"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		p := New(t.Context(), Config{LogDir: dir, Hide: hide})
		if got := p.lastOutput(nil); got == "" || strings.Contains(got, "hunt") || strings.Contains(got, "ter2") {
			t.Errorf("%s: got %q", name, got)
		}
	}
}
