package slurm

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/render"
)

// loudly is what a task adds to the codes that are to be heard above those of signals.
const loudly = 128

// loud are these codes, sorted.
func loud() []int { return launcher.CodesOf(launcher.Elsewhere, launcher.Never) }

// requeues is how often a job puts itself into the queue again.
const requeues = 5

// Jobs writes scripts for sbatch.
var Jobs = render.Launcher{
	Name: "slurm", Formats: []string{"sbatch"}, Window: render.ClusterWindow(killWait * time.Second),
	Write: func(w *render.Writer) ([]render.File, error) { return writer{w}.write() },
}

type writer struct{ *render.Writer }

func (w writer) write() ([]render.File, error) {
	if render.Remote(w.Options.Binary) {
		return nil, fmt.Errorf("binary %s: want a path that all nodes see", w.Options.Binary)
	}
	if len(w.Groups) == 0 {
		return nil, fmt.Errorf("no instances: there is nothing for Slurm to start")
	}
	if binary := w.Local(""); !path.IsAbs(binary) && strings.Contains(binary, "/") {
		return nil, fmt.Errorf("binary %s: want an absolute path, or a name of the PATH", binary)
	}
	for _, text := range append([]string{w.Options.Queue}, w.labels()...) {
		blank := func(r rune) bool { return r <= ' ' || unicode.IsSpace(r) }
		if strings.ContainsAny(text, "\"'\\#") || strings.ContainsFunc(text, blank) {
			return nil, fmt.Errorf("%s: an option of sbatch in a script has no blanks, quotes and #",
				appdef.Quote(text))
		}
	}
	if len(w.Options.Run) > render.LongestRun {
		return nil, fmt.Errorf("run id %s: want %d characters at most: the number of a restart comes behind it",
			w.Options.Run, render.LongestRun)
	}
	parts := w.parts()
	w.loseAll()
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	for i, part := range parts {
		if i > 0 {
			b.WriteString("#SBATCH hetjob\n")
		}
		b.WriteString(w.options(part, i == 0))
	}
	how := []string{"  sbatch " + w.Options.AppID + ".sbatch", ""}
	b.WriteString(render.Comment(append([]string{""},
		w.Header("A batch job of Slurm, written by muster render slurm.", append(how, render.CodeLines()...)...)...)))
	b.WriteString(w.script(parts))
	return []render.File{{Name: w.Options.AppID + ".sbatch", Text: b.String()}}, nil
}

func (w writer) labels() []string {
	var out []string
	for _, g := range w.Groups {
		out = append(out, g.Label)
	}
	return out
}

// part is one component of a heterogeneous job, or all of a job whose tasks are alike.
type part struct {
	render.Group
	all bool // of all components: the task's rank says which it is
}

func (w writer) parts() []part {
	if w.OneSize() {
		one := w.Groups[0]
		one.Count = w.Instances()
		one.Window = w.LongestWindow()
		one.Command = w.Command("", one.Window)
		return []part{{one, true}}
	}
	parts := make([]part, len(w.Groups))
	for i, g := range w.Groups {
		parts[i].Group = g
	}
	return parts
}

func (w writer) loseAll() {
	for _, g := range w.Groups {
		if g.VCores == appdef.Max && !g.Spread {
			w.Cannot("%s: vcores max: the job has its nodes to itself; instances on one node share its cores and "+
				"memory, and muster.spread=host parts them", g.Name)
		}
	}
	w.Cannot("kill time-out: KillWait of the cluster's configuration; the agents are told %s", w.LongestWindow())
	if w.Options.Priority != "" {
		w.Cannot("priority %s: only an operator of Slurm may raise one; see sbatch --nice and --qos",
			w.Options.Priority)
	}
	if w.Options.TimeLimit > 0 {
		w.Cannot("time limit %s: of each start; a job that has been put into the queue again for another reason has "+
			"it again", render.SpanText(w.Options.TimeLimit))
	}
	w.Cannot("an agent that ends alone: Slurm restarts no single task, so all are ended and the job is put into the " +
		"queue again")
}

// options are the lines of sbatch. Those of the whole job stand with the first part.
func (w writer) options(p part, first bool) string {
	var b strings.Builder
	say := func(option string) { b.WriteString("#SBATCH --" + option + "\n") }
	if first {
		say("job-name=" + w.Options.AppID)
		say("output=" + w.Options.AppID + "-%j.out")
		say("open-mode=append")
		say("requeue")
		// To the agents, not to this script: so much before the time is over they stop in grace.
		say("signal=TERM@" + strconv.Itoa(notice(p.Window)))
	}
	if w.Options.TimeLimit > 0 {
		say("time=" + strconv.Itoa(max(1, int((w.Options.TimeLimit+time.Minute-1)/time.Minute))))
	}
	if w.Options.Queue != "" {
		say("partition=" + w.Options.Queue)
	}
	if p.VCores == appdef.Max {
		say("exclusive")
	}
	for _, option := range p.options() {
		say(option)
	}
	if p.Label != "" {
		say("constraint=" + p.Label)
	}
	return b.String()
}

// notice is how many seconds before its time is over a job is told.
func notice(window time.Duration) int { return int(max(window, killWait*time.Second) / time.Second) }

// earlySeconds is by how many seconds Slurm may tell it before that (sbatch(1), --signal).
const earlySeconds = 60

// options are what all tasks of a part are asked for, for sbatch and for srun.
func (p part) options() []string {
	out := append([]string{"ntasks=" + strconv.Itoa(p.Count)}, p.cores()...)
	cores := max(p.VCores, 1)
	if p.MemoryMB > 0 && p.VCores != appdef.Max {
		out = append(out, "mem-per-cpu="+strconv.Itoa((p.MemoryMB+cores-1)/cores)+"M")
	} else { // all of the node: sbatch refuses --mem=0 beside another part's
		out = append(out, "mem-per-cpu=0")
	}
	if p.GPUs > 0 {
		kind := ""
		if p.GPUType != "" {
			kind = strings.ToLower(strings.Map(typeRune, p.GPUType)) + ":"
		}
		out = append(out, "gpus-per-task="+kind+strconv.Itoa(p.GPUs))
	}
	if p.Spread {
		out = append(out, "ntasks-per-node=1")
	}
	return out
}

// cores is the option that says how many a task has. A step for which nobody says it has all that the job has.
func (p part) cores() []string {
	if p.VCores == appdef.Max {
		return nil
	}
	return []string{"cpus-per-task=" + strconv.Itoa(max(p.VCores, 1))}
}

// typeRune makes a GPU's model a name of gres.conf.
func typeRune(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
		return r
	}
	return '_'
}

// script starts the steps and reads their exit codes. Nothing in it handles SIGTERM: who cancels the job ends the
// script, and nothing is put into the queue again.
func (w writer) script(parts []part) string {
	index := ""
	if !parts[0].all { // the task's number is not the rank, but the index
		index = ` --index "$SLURM_PROCID"`
	}
	others := ""
	if len(parts) > 1 {
		others = `	# srun ends the tasks of its own step only
	if [ "$code" -ne 0 ] && [ "$status" -eq 0 ]; then scancel --signal=TERM "$SLURM_JOB_ID"; fi
`
	}
	requeue := ""
	if w.Options.TimeLimit > 0 {
		requeue = " && ! late"
	}
	var b strings.Builder
	if w.Options.TokenFile != "" {
		b.WriteString("export CONSUL_HTTP_TOKEN_FILE=" + render.ShellWord(w.Options.TokenFile) + "\n")
	}
	fmt.Fprintf(&b, `
# A run that ended with %s is over: what is tried elsewhere is a new one, named in the job's comment.
run=%s
if [ "${SLURM_RESTART_COUNT:-0}" -gt 0 ]; then
	kept=$(squeue --noheader --jobs "$SLURM_JOB_ID" --format %%k | head -n 1)
	case $kept in "$run"-*) run=$kept ;; esac
fi

# A task that ends badly on its own leaves the gang short of one for good: --kill-on-bad-exit ends the others `+
		`in grace. They
# end with 143, or by the signal, and srun tells the highest code alone: what decides more than that is told 128 higher.
task='trap : TERM
%scase $code in %s) code=$((code + %d)) ;; esac
exit "$code"'

`, render.Joined(launcher.CodesOf(launcher.Elsewhere), ", "), render.ShellWord(w.Options.Run), w.agentLines(index),
		render.Joined(loud(), " | "), loudly)
	if w.Options.TimeLimit > 0 {
		fmt.Fprintf(&b, lateFunction, notice(parts[0].Window)+earlySeconds)
	}
	if len(parts) > 1 {
		b.WriteString(`# What the first part was asked for srun would read in the environment for all of them.
unset SLURM_CPUS_PER_TASK SLURM_GPUS_PER_TASK SLURM_MEM_PER_CPU SLURM_MEM_PER_NODE ` +
			`SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE

`)
	}
	for i, p := range parts {
		b.WriteString(w.step(p, i, len(parts)) + " &\n")
	}
	fmt.Fprintf(&b, `
status=0
for ((left = %d; left > 0; left--)); do
	wait -n
	code=$?
%s	if [ "$code" -gt "$status" ]; then status=$code; fi
done
if [ "$status" -ge %d ]; then status=$((status - %d)); fi

if [ "${SLURM_RESTART_COUNT:-0}" -lt %d ]%s; then
	case $status in
	%s)
		scontrol update "JobId=$SLURM_JOB_ID" "Comment=%s-$((${SLURM_RESTART_COUNT:-0} + 1))"
		scontrol requeue "$SLURM_JOB_ID"
		;;
	%s) scontrol requeue "$SLURM_JOB_ID" ;;
	esac
fi
exit "$status"
`, len(parts), others, loud()[0]+loudly, loudly, requeues, requeue,
		render.Joined(launcher.CodesOf(launcher.Elsewhere), " | "), w.Options.Run,
		render.Joined(launcher.CodesOf(launcher.Again), " | "))
	return b.String()
}

// agentLines run the agent in a task. A binary of known digest is copied to a folder of the task's own, checked and
// started there, so that nobody exchanges it between the check and the start.
func (w writer) agentLines(index string) string {
	if w.Options.BinarySHA256 == "" {
		return `"$@"` + index + "\ncode=$?\n"
	}
	steps := w.CheckedCopy("d=$(mktemp -d)", `"$1"`, w.Options.BinarySHA256, w.LocalHelper(""))
	return `code=77
` + strings.Join(steps, " &&\n\t") + ` && code=
if [ -n "$code" ]; then
	echo "muster: $1: $why" >&2
else
	shift
	"$d/muster" "$@"` + index + `
	code=$?
fi
if [ -n "$d" ]; then rm -rf "$d"; fi
`
}

// lateFunction keeps a job from living on in the queue when the time limit of its user is over. Without
// one it is the partition that interrupts it.
const lateFunction = `# The tasks are told of the end of their time, and not this script.
late() {
	local end
	end=$(squeue --noheader --jobs "$SLURM_JOB_ID" --format %%e | head -n 1)
	[ -n "$end" ] && end=$(date --date="$end" +%%s) && [ "$end" -le $(($(date +%%s) + %d)) ]
}

`

// step is one srun. In a step of one component the task's number is the index; in one of all it is the rank.
func (w writer) step(p part, number, of int) string {
	words := []string{"srun", "--kill-on-bad-exit=1", "--wait=0"}
	options := p.cores() // the rest srun reads in the environment
	if of > 1 {
		words = append(words, "--het-group="+strconv.Itoa(number))
		options = p.options()
	}
	for _, option := range options {
		words = append(words, "--"+option)
	}
	words = append(words, "bash", "-c", "", "muster")
	task, run := len(words)-2, len(words)+1+render.RunAt
	agent := append([]string{w.Local("")}, p.Command...)
	return render.ShellLines("  ", append(words, agent...), map[int]string{task: `"$task"`, run: `"$run"`})
}
