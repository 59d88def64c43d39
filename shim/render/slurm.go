package render

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
)

// requeues is how often a job puts itself into the queue again.
const requeues = 5

func (w *writer) slurm() ([]File, error) {
	if remote(w.o.Binary) {
		return nil, fmt.Errorf("binary %s: want a path that all nodes see", w.o.Binary)
	}
	if len(w.groups) == 0 {
		return nil, fmt.Errorf("no instances: there is nothing for Slurm to start")
	}
	if binary := w.local(""); !path.IsAbs(binary) && strings.Contains(binary, "/") {
		return nil, fmt.Errorf("binary %s: want an absolute path, or a name of the PATH", binary)
	}
	for _, text := range append([]string{w.o.Queue}, w.labels()...) {
		if strings.ContainsAny(text, " \t\"'\\") {
			return nil, fmt.Errorf("%s: an option of sbatch in a script has no blanks and quotes", appdef.Quote(text))
		}
	}
	parts := w.slurmParts()
	w.loseOfSlurm()
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	for i, part := range parts {
		if i > 0 {
			b.WriteString("#SBATCH hetjob\n")
		}
		b.WriteString(w.slurmOptions(part, i == 0))
	}
	how := []string{"  sbatch " + w.o.AppID + ".sbatch", ""}
	b.WriteString(comment(append([]string{""}, w.header("A batch job of Slurm, written by muster render slurm.", append(how, codeLines()...)...)...)))
	b.WriteString(w.slurmScript(parts))
	return []File{{w.o.AppID + ".sbatch", b.String()}}, nil
}

func (w *writer) labels() []string {
	var out []string
	for _, g := range w.groups {
		out = append(out, g.label)
	}
	return out
}

// slurmPart is one component of a heterogeneous job, or all of a job whose tasks are alike.
type slurmPart struct {
	group
	all bool // of all components: the task's rank says which it is
}

func (w *writer) slurmParts() []slurmPart {
	if w.oneSize() {
		one := w.groups[0]
		one.count = w.instances()
		one.window = w.longestWindow()
		one.command = w.command("", one.window)
		return []slurmPart{{one, true}}
	}
	parts := make([]slurmPart, len(w.groups))
	for i, g := range w.groups {
		parts[i].group = g
	}
	return parts
}

func (w *writer) loseOfSlurm() {
	w.lose("kill time-out: KillWait of the cluster's configuration; the agents are told %s", w.longestWindow())
	if w.o.Priority != "" {
		w.lose("priority %s: only an operator of Slurm may raise one; see sbatch --nice and --qos", w.o.Priority)
	}
	w.lose("an agent that ends alone: Slurm starts no task anew, so all are ended and the job is put into the queue again")
}

// slurmOptions are the lines of sbatch. Those of the whole job stand with the first part.
func (w *writer) slurmOptions(p slurmPart, first bool) string {
	var b strings.Builder
	say := func(option string) { b.WriteString("#SBATCH --" + option + "\n") }
	if first {
		say("job-name=" + w.o.AppID)
		say("output=" + w.o.AppID + "-%j.out")
		say("open-mode=append")
		say("requeue")
		// To the agents, not to this script: so much before the time is over they stop in grace.
		say("signal=TERM@" + strconv.Itoa(int(max(p.window, slurmWindow)/time.Second)))
	}
	if w.o.TimeLimit > 0 {
		say("time=" + strconv.Itoa(max(1, int((w.o.TimeLimit+time.Minute-1)/time.Minute))))
	}
	if w.o.Queue != "" {
		say("partition=" + w.o.Queue)
	}
	say("ntasks=" + strconv.Itoa(p.count))
	cores := max(p.vcores, 1)
	if p.vcores == appdef.Max {
		say("exclusive")
	} else {
		say("cpus-per-task=" + strconv.Itoa(cores))
	}
	if p.memory > 0 {
		say("mem-per-cpu=" + strconv.Itoa((p.memory+cores-1)/cores) + "M")
	} else {
		say("mem=0")
	}
	if p.gpus > 0 {
		kind := ""
		if p.gpuType != "" {
			kind = strings.ToLower(strings.Map(typeRune, p.gpuType)) + ":"
		}
		say("gpus-per-task=" + kind + strconv.Itoa(p.gpus))
	}
	if p.spread {
		say("ntasks-per-node=1")
	}
	if p.label != "" {
		say("constraint=" + p.label)
	}
	return b.String()
}

// typeRune makes a GPU's model a name of gres.conf.
func typeRune(r rune) rune {
	if r == ' ' {
		return '_'
	}
	return r
}

// slurmScript starts the steps and reads their exit codes. Nothing in it handles SIGTERM: who cancels the job ends the script,
// and nothing is put into the queue again.
func (w *writer) slurmScript(parts []slurmPart) string {
	var b strings.Builder
	if w.o.TokenFile != "" {
		b.WriteString("export CONSUL_HTTP_TOKEN_FILE=" + shellWord(w.o.TokenFile) + "\n")
	}
	fmt.Fprintf(&b, `
# A run that ended with %s is over: what is tried elsewhere is a new one, named in the job's comment.
run=%s
if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
	kept=$(squeue --noheader --jobs "$SLURM_JOB_ID" --format %%k | head -n 1)
	case $kept in "$run"-*) run=$kept ;; esac
fi

# A task that ends badly on its own leaves the gang short of one for good: --kill-on-bad-exit ends the others in grace.
steps=()
`, joined(answered(Elsewhere), ", "), shellWord(w.o.Run))
	for i, p := range parts {
		b.WriteString(w.slurmStep(p, i, len(parts)) + " &\nsteps+=($!)\n")
	}
	fmt.Fprintf(&b, `
status=0
for step in "${steps[@]}"; do
	wait "$step"
	code=$?
	if [ "$code" -gt "$status" ]; then status=$code; fi
done

if [ "${SLURM_RESTART_COUNT:-0}" -lt %d ]; then
	case $status in
	%s)
		scontrol update "JobId=$SLURM_JOB_ID" "Comment=%s-$((${SLURM_RESTART_COUNT:-0} + 1))"
		scontrol requeue "$SLURM_JOB_ID"
		;;
	%s) scontrol requeue "$SLURM_JOB_ID" ;;
	esac
fi
exit "$status"
`, requeues, joined(answered(Elsewhere), " | "), w.o.Run, joined(answered(Again), " | "))
	return b.String()
}

// slurmStep is one srun. In a step of one component the task's number is the index; in one of all it is the rank.
func (w *writer) slurmStep(p slurmPart, number, of int) string {
	words := []string{"srun", "--kill-on-bad-exit=1", "--wait=0"}
	if of > 1 {
		words = append(words, "--het-group="+strconv.Itoa(number))
	}
	words = append(words, "--cpus-per-task="+strconv.Itoa(max(p.vcores, 1)))
	agent := append([]string{w.local("")}, p.command...)
	if !p.all {
		words = append(words, "bash", "-c", `exec "$@" --index "$SLURM_PROCID"`, "muster")
	}
	at := len(words) + 1 + runAt
	return shellLines("  ", append(words, agent...), map[int]string{at: `"$run"`})
}
