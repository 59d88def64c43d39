package render_test

import (
	"errors"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/launcher"
)

// TestSlurmRequeues runs the script with an srun that ends with each code, and looks at what it asks of scontrol.
func TestSlurmRequeues(t *testing.T) {
	script := rendered(t, "slurm", "", small(t), options())
	words, err := typed(t, script, []string{"srun"}, "SLURM_JOB_ID=7")
	if err != nil {
		t.Fatal(err)
	}
	task := taskOf(t, words)
	const again, elsewhere = "scontrol requeue 7", "scontrol update JobId=7 Comment=1700000000-%s scontrol requeue 7"
	for _, tt := range []struct {
		code, restarts int
		kept           string // in the job's comment
		run, asks      string
	}{
		{code: 0, run: "1700000000"},
		{code: 1, run: "1700000000"},
		{code: 64, run: "1700000000"},
		{code: 65, run: "1700000000"},
		{code: 69, run: "1700000000", asks: again},
		{code: 70, run: "1700000000"},
		{code: 75, run: "1700000000", asks: strings.Replace(elsewhere, "%s", "1", 1)},
		{code: 76, run: "1700000000"},
		{code: 77, run: "1700000000"},
		{code: 93, run: "1700000000"},
		{code: 137, run: "1700000000", asks: again},
		{code: 143, run: "1700000000", asks: again},
		{code: 143, restarts: 4, run: "1700000000", asks: again},
		{code: 143, restarts: 5, run: "1700000000"}, // it was enough
		{code: 75, restarts: 1, kept: "1700000000-1", run: "1700000000-1", asks: strings.Replace(elsewhere, "%s", "2", 1)},
		{code: 0, restarts: 1, kept: "1600000000-1", run: "1700000000"}, // of another rendering
		{code: 0, restarts: 1, kept: "(null)", run: "1700000000"},
		{code: 0, kept: "1700000000-9", run: "1700000000"}, // submitted anew with an old comment
	} {
		t.Run(strconv.Itoa(tt.code)+" after "+strconv.Itoa(tt.restarts), func(t *testing.T) {
			environ := []string{"SLURM_JOB_ID=7", "SPY_SAYS=" + tt.kept, "SPY_CODE=" + strconv.Itoa(told(t, task, tt.code))}
			if tt.restarts > 0 {
				environ = append(environ, "SLURM_RESTART_COUNT="+strconv.Itoa(tt.restarts))
			}
			words, err := typed(t, script, []string{"srun", "scontrol", "squeue"}, environ...)
			var exit *exec.ExitError
			switch {
			case tt.code == 0 && err != nil, tt.code != 0 && (!errors.As(err, &exit) || exit.ExitCode() != tt.code):
				t.Errorf("the script ended with %v, want %d", err, tt.code)
			}
			if at := slices.Index(words, "--run"); at < 0 || words[at+1] != tt.run {
				t.Errorf("run: got %q, want %s", words, tt.run)
			}
			asks := ""
			if at := slices.Index(words, "scontrol"); at >= 0 {
				asks = strings.Join(words[at:], " ")
			}
			if asks != tt.asks {
				t.Errorf("asked: got %q, want %q", asks, tt.asks)
			}
		})
	}
}

// TestSlurmTimeIsOver has tasks that were told of the end of the job's time. The job ends with them where somebody has given it
// that time, and goes into the queue where it is the partition's.
func TestSlurmTimeIsOver(t *testing.T) {
	const asks = "scontrol requeue 7"
	for _, tt := range []struct {
		name  string
		limit time.Duration
		code  int
		left  string // squeue's word for the end
		asks  string
	}{
		{"told", time.Hour, 143, inTime(20 * time.Second), ""},
		{"told as early as may be", time.Hour, 143, inTime(85 * time.Second), ""},
		{"a run that is tried elsewhere", time.Hour, 75, inTime(20 * time.Second), ""},
		{"killed long before", time.Hour, 137, inTime(30 * time.Minute), asks},
		{"nobody knows", time.Hour, 143, "", asks},
		{"taken away since", time.Hour, 143, "NONE", asks},
		{"the partition's", 0, 143, inTime(20 * time.Second), asks},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := options()
			o.TimeLimit = tt.limit
			script := rendered(t, "slurm", "", small(t), o)
			code := tt.code
			if code == 75 {
				code += 128
			}
			words, err := typed(t, script, []string{"srun", "scontrol", "squeue"}, "SLURM_JOB_ID=7", "TZ=UTC", "SPY_SAYS="+tt.left, "SPY_CODE="+strconv.Itoa(code))
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.ExitCode() != tt.code {
				t.Errorf("the script ended with %v, want %d", err, tt.code)
			}
			got := ""
			if at := slices.Index(words, "scontrol"); at >= 0 {
				got = strings.Join(words[at:], " ")
			}
			if got != tt.asks {
				t.Errorf("asked: got %q, want %q", got, tt.asks)
			}
		})
	}
}

// inTime is a moment as squeue writes it.
func inTime(d time.Duration) string { return time.Now().UTC().Add(d).Format("2006-01-02T15:04:05") }

// TestSlurmHearsWhatDecides holds that a task which is ended for another's sake does not drown why the other has ended.
func TestSlurmHearsWhatDecides(t *testing.T) {
	words, err := typed(t, rendered(t, "slurm", "", small(t), options()), []string{"srun"}, "SLURM_JOB_ID=7")
	if err != nil {
		t.Fatal(err)
	}
	task := taskOf(t, words)
	for _, c := range launcher.Codes() {
		decides := c.Answer == launcher.Never || c.Answer == launcher.Elsewhere
		if got := told(t, task, c.Code); decides && got <= 128+31 || !decides && got != c.Code {
			t.Errorf("%d (%s): srun is told %d", c.Code, c.Answer, got)
		}
	}
}

// taskOf is what bash runs in each task, of the words that srun was started with.
func taskOf(t *testing.T, words []string) string {
	t.Helper()
	at := slices.Index(words, "-c")
	if at < 1 || words[at-1] != "bash" || words[at+2] != "muster" {
		t.Fatalf("got %q", words)
	}
	return words[at+1]
}

// told is what a task ends with whose agent ends with this code.
func told(t *testing.T, task string, code int) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-c", task, "muster", "bash", "-c", "exit "+strconv.Itoa(code))
	var exit *exec.ExitError
	if err := cmd.Run(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode()
}

// TestSlurmComponents has components of different sizes started by steps of their own, each task with its number as index, and
// what one is asked for is no other's. When one ends badly the others are told, once.
func TestSlurmComponents(t *testing.T) {
	o := options()
	words, err := typed(t, rendered(t, "slurm", "", apps(t)["everything"], o), []string{"srun"}, "SLURM_JOB_ID=7")
	if err != nil {
		t.Error(err)
	}
	var steps []string // they are started at the same time
	for at, word := range words {
		if word == "--component" {
			steps = append(steps, words[at+1])
		}
		if word == "-c" && !strings.Contains(words[at+1], "\n\"$@\" --index \"$SLURM_PROCID\"\n") {
			t.Errorf("got %q", words[at+1])
		}
	}
	for _, mine := range []string{"SLURM_MEM_PER_CPU=1", "SLURM_GPUS_PER_TASK=1", "SLURM_NTASKS_PER_NODE=1"} {
		_, err := typed(t, strings.ReplaceAll(rendered(t, "slurm", "", apps(t)["everything"], o), "srun ", `test -z "$`+strings.TrimSuffix(mine, "=1")+`" && srun `), []string{"srun"}, "SLURM_JOB_ID=7", mine)
		if err != nil {
			t.Errorf("%s goes to all steps: %v", mine, err)
		}
	}
	words, _ = typed(t, rendered(t, "slurm", "", apps(t)["everything"], o), []string{"srun", "scancel"}, "SLURM_JOB_ID=7", "SPY_CODE=221")
	if n := strings.Count(strings.Join(words, " "), "scancel --signal=TERM 7"); n != 1 {
		t.Errorf("the others were told %d times: %q", n, words)
	}
	slices.Sort(steps)
	if d := cmp.Diff([]string{"Chief", "board", "worker"}, steps); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}
