package machine

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/conductor"
)

var update = flag.Bool("update", false, "rewrite golden files")

// TestScenarios plays testdata/*.txt: a line is an event, the lines with a tab under it are what
// the machine answered.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(raw))
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := gocmp.Diff(string(raw), got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func play(t *testing.T, script string) string {
	var out strings.Builder
	s := New()
	now := time.Unix(1e9, 0)
	for line := range strings.Lines(script) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "\t") {
			continue
		}
		out.WriteString(line + "\n")
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		now = now.Add(time.Second)
		e := parseEvent(t, line, s)
		e.At = now
		var effects []Effect
		before := s.Phase
		s, effects = Step(s, e)
		if s.Phase != before {
			fmt.Fprintf(&out, "\t→ %s\n", s.Phase)
		}
		if e.Kind == Progressed {
			fmt.Fprintf(&out, "\tstep %d\n", s.Step)
		}
		for _, f := range effects {
			out.WriteString("\t" + show(f) + "\n")
		}
		if s.Phase.Final() {
			fmt.Fprintf(&out, "\texit code %d\n", s.ExitCode())
		}
	}
	return out.String()
}

func show(f Effect) string {
	text := string(f.Kind)
	switch f.Kind {
	case DoAcknowledge, DoReportUp:
		text += fmt.Sprintf(" generation %d", f.Gen)
	case DoStart:
		text += fmt.Sprintf(" attempt %d", f.Attempt)
		if f.Resume != nil {
			text += fmt.Sprintf(", resume %d", *f.Resume)
		}
	case DoCommit:
		text += fmt.Sprintf(" step %d", f.Step)
	case DoArm:
		text += fmt.Sprintf(" %s %s", f.Timer.Kind, f.After)
	case DoRestarted:
		text += fmt.Sprintf(" attempt %d, %d used", f.Attempt, f.Budget.Used)
	case DoReport:
		text += fmt.Sprintf(" %s: %s", f.Report.Phase, f.Report.Exit.Class)
		if f.Report.Exit.Why != "" {
			text += " (" + f.Report.Exit.Why + ")"
		}
		if f.Report.Exit.Final {
			text += ", final"
		}
	case DoLeave:
		if f.Report != nil {
			text += " with " + cmp.Or(string(f.Report.Exit.Class), string(f.Report.Phase))
		}
	}
	return text
}

func parseEvent(t *testing.T, line string, s State) Event {
	f := strings.Fields(line)
	e := Event{Kind: eventKind(f[0]), Attempt: s.Attempt, Roll: 0.5}
	args := f[1:]
	num := func(i int) int {
		n, err := strconv.Atoi(args[i])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		return n
	}
	switch e.Kind {
	case Joined:
		in, err := registry.ParseInstance(args[0])
		if err != nil {
			t.Fatal(err)
		}
		e.Joined = &Join{Instance: in, Service: slices.Contains(args, "service"), Spent: slices.Contains(args, "spent")}
		if slices.Contains(args, "charged") {
			e.Joined.Budget.Used = 2
		}
		e.Directive = directive(args[1], num(2))
		e.Directive.Run = "1"
		if slices.Contains(args, "anew=2") {
			e.Directive.Retries.Gen = 2
		}
	case Directed:
		e.Directive = directive(args[0], num(1))
		e.Directive.Run = "1"
		if slices.Contains(args, "run=2") {
			e.Directive.Run = "2"
		}
		for _, arg := range args[2:] {
			if step, ok := strings.CutPrefix(arg, "resume="); ok {
				n, _ := strconv.ParseInt(step, 10, 64)
				e.Directive.Resume = &n
			}
			if only, ok := strings.CutPrefix(arg, "only="); ok {
				e.Directive.Released = strings.Split(only, ",")
			}
			if gen, ok := strings.CutPrefix(arg, "anew="); ok {
				e.Directive.Retries.Gen, _ = strconv.Atoi(gen)
				e.Directive.Rest = 30
			}
			if counts, ok := strings.CutPrefix(arg, "workers="); ok {
				n, _ := strconv.Atoi(counts)
				e.Directive.Counts = map[string]int{"worker": n}
			}
			if target, ok := strings.CutPrefix(arg, "target="); ok {
				n, _ := strconv.Atoi(target)
				e.Directive.Target = map[string]int{"worker": n}
			}
		}
		if e.Directive.Act == registry.ActStop {
			e.Directive.Verdict = &registry.Verdict{Outcome: registry.Outcome(args[2])}
			if len(args) > 3 {
				code := 7
				e.Directive.Verdict.Class, e.Directive.Verdict.First = registry.ClassApp, args[3]
				e.Directive.Verdict.Exit = &registry.MemberExit{Code: &code}
			}
		}
	case Staged:
		grace := 10 * time.Second
		if slices.Contains(args, "patient") {
			grace = time.Minute
		}
		e.Policy = &Policy{
			Scope: args[0], Service: slices.Contains(args, "service"), Ordered: slices.Contains(args, "ordered"), Follows: slices.Contains(args, "follows"), Grace: grace, Barrier: 30 * time.Minute,
			Rule: conductor.BudgetRule{
				Max: 2, Window: time.Hour, RefillCheckpoint: true, Backoff: conductor.Backoff{Min: time.Second, Max: time.Minute},
			},
		}
		if slices.Contains(args, "hold") {
			e.Policy.Hold, e.Policy.HoldEnds = time.Hour, slices.Contains(args, "end")
		}
		if slices.Contains(args, "timeout") {
			e.Policy.Timeout, e.Policy.Duration = 2*time.Hour, time.Hour
		}
	case Extend:
		e.For = 2 * time.Hour
	case Acked, Overtaken, Sealed, Mismatch:
		e.Gen = num(0)
	case Reported:
		e.Gen = s.ResultGen
	case Gone:
		e.Exit = &Exit{Free: slices.Contains(args, "free"), Final: slices.Contains(args, "final"), CutOff: slices.Contains(args, "cut")}
		if sig, ok := strings.CutPrefix(args[0], "signal="); ok {
			e.Exit.Signal, _ = strconv.Atoi(sig)
		} else {
			code := num(0)
			e.Exit.Code = &code
		}
	case Rebound:
		e.On = !slices.Contains(args, "elsewhere")
	case Progressed:
		e.Step = int64(num(0))
	case Term:
		e.Signal = num(0)
	case Refused, Denied:
		e.Code, e.Cause = num(0), "refused"
	case StageFailed:
		e.Class, e.Cause = registry.ClassDefinition, "no such file"
	case fired:
		e.Timer.Kind = timerKind(args[0])
		e.Timer.Seq = map[timerKind]int{timerGrace: s.timers.grace, timerBackoff: s.timers.backoff, timerBarrier: s.timers.barrier, timerRun: s.timers.run, timerProcess: s.timers.process, timerHold: s.timers.hold}[e.Timer.Kind]
		if slices.Contains(args, "old") {
			e.Timer.Seq--
		}
	default:
		if len(args) > 0 {
			t.Fatalf("%q: this event takes no arguments here", line)
		}
	}
	return e
}

func directive(act string, gen int) *registry.Directive {
	return &registry.Directive{Act: registry.Act(act), Gen: gen}
}

func TestTableIsWhole(t *testing.T) {
	reached := map[Phase]bool{Starting: true}
	for range rules {
		for _, r := range rules {
			if reached[r.From] {
				reached[r.To] = true
			}
			if r.From.Final() {
				t.Errorf("final phase %s has a rule", r.From)
			}
		}
	}
	for _, p := range allPhases() {
		if !reached[p] {
			t.Errorf("phase %s cannot be reached", p)
		}
	}
	// Who does not hear: starting has no process and no index, leaving is on its way out already;
	// claiming and standby hold no index that another could take.
	deaf := map[eventKind][]Phase{Term: {Leaving}, Taken: {Starting, Claiming, Standby, Leaving}}
	for kind, phases := range deaf {
		for _, p := range allPhases() {
			if p.Final() || slices.Contains(phases, p) {
				continue
			}
			if !slices.ContainsFunc(rules, func(r rule) bool { return r.From == p && r.On == kind }) {
				t.Errorf("%s does not hear %s", p, kind)
			}
		}
	}
}

func TestMachinePictureIsCurrent(t *testing.T) {
	const file = "../../doc/machine.md"
	if *update {
		if err := os.WriteFile(file, []byte(markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(string(want), markdown()); diff != "" {
		t.Errorf("doc/machine.md is not the table (make golden): -want +got\n%s", diff)
	}
}

// TestRandomLives throws any event at any state: whatever comes, final phases ask for nothing, a
// process is started only when none runs, never for an older generation, never after a stop and never while
// the agent is cut off, when none runs on either.
func TestRandomLives(t *testing.T) {
	kinds := []string{
		"boot", "held", "joined worker-1 wait 1", "staged gang", "staged instance", "staged gang service", "stage-failed", "directive wait 1",
		"directive run 1", "directive wait 2", "directive run 2", "directive stop 2 succeeded", "acked 1", "acked 2", "overtaken 2",
		"published", "sealed 1", "sealed 2", "mismatch 1", "started", "up", "directive run 1 only=ps", "directive run 1 only=ps,worker", "directive run 2 only=ps",
		"staged instance ordered", "staged gang service follows", "staged gang hold", "staged instance hold", "staged gang hold end", "extend", "release", "timer hold", "timer hold old", "directive stop 2 failed", "directive wait 2 workers=1", "directive run 1 workers=1 target=2", "directive wait 2 anew=2", "directive run 2 anew=2", "gone 0", "gone 3", "gone signal=9", "gone 1 free", "rebound", "rebound elsewhere",
		"reported", "left", "denied 77", "timer grace", "timer timeout", "timer backoff", "timer barrier", "timer backoff old", "term 15", "superseded", "checkpoint 5", "unreachable", "reachable", "cut-off", "contact", "gone signal=9 cut",
	}
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := New()
		running, stopped := false, false
		var life []string
		for range 60 {
			line := kinds[r.IntN(len(kinds))]
			if strings.HasPrefix(line, "gone") != (running && r.IntN(3) == 0) {
				continue // the engine says gone of a process that ran, and of no other
			}
			life = append(life, line)
			e := parseEvent(t, line, s)
			e.At = time.Unix(1e9, 0)
			was := s
			var effects []Effect
			s, effects = Step(s, e)
			running = running && e.Kind != Gone
			stopped = stopped || s.Directive.Act == registry.ActStop
			if was.Phase.Final() && len(effects) > 0 {
				t.Fatalf("seed %d: final phase asks for %v\n%s", seed, effects, strings.Join(life, "\n"))
			}
			if s.Phase == Fenced && running {
				t.Fatalf("seed %d: fenced, and a process runs\n%s", seed, strings.Join(life, "\n"))
			}
			if s.CutOff && s.Phase == Running {
				t.Fatalf("seed %d: running while cut off\n%s", seed, strings.Join(life, "\n"))
			}
			for _, f := range effects {
				if f.Kind == DoTerminate && s.CutOff && s.Until.Sub(e.At) > registry.FenceGrace {
					t.Fatalf("seed %d: a fence of %s\n%s", seed, s.Until.Sub(e.At), strings.Join(life, "\n"))
				}
				if f.Kind != DoStart {
					continue
				}
				if s.CutOff {
					t.Fatalf("seed %d: started while cut off\n%s", seed, strings.Join(life, "\n"))
				}
				if running || stopped || f.Gen < was.Gen {
					t.Fatalf("seed %d: started while running=%v stopped=%v\n%s", seed, running, stopped, strings.Join(life, "\n"))
				}
				if was.Phase == Waiting && !s.Directive.Releases("worker") && (!s.Policy.Service || s.Policy.Follows) {
					t.Fatalf("seed %d: started before its turn\n%s", seed, strings.Join(life, "\n"))
				}
				running = true
			}
		}
	}
}

// TestPauses: the first restart in a row is immediate, each further one waits twice as long as the last, with jitter.
func TestPauses(t *testing.T) {
	b := conductor.Backoff{Min: time.Second, Max: time.Minute}
	s := State{Policy: Policy{Rule: conductor.BudgetRule{Backoff: b}}}
	for n := range 40 {
		want := time.Duration(0)
		if n > 0 {
			want = min(time.Second<<min(n-1, 10), time.Minute)
		}
		for _, roll := range []float64{0, 0.5, 0.999} {
			got := s.pause(n+1, roll)[0].After
			if got < want*3/4 || got > want*5/4 || roll == 0.5 && got != want {
				t.Errorf("restart %d: got %s, want within a quarter of %s", n+1, got, want)
			}
		}
	}
}
