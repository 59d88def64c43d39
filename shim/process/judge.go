package process

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/muster-agent/muster/packages/slidershell"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/script"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/tail"
)

// blame is a cause of an end that was seen from outside the process. The zero value is none.
type blame struct {
	class registry.Class
	why   string
	at    time.Time
	ended bool // the agent ended the process for it
	// whatever: it failed, whatever its exit says: the process that exited is not the one that was ended.
	whatever bool
	final    bool // another attempt would end the same way
}

// blames keeps the last blame of the current attempt.
type blames struct {
	mu   sync.Mutex
	last blame
}

// blameTime is how long after a fault that a process may survive its end is still blamed on the fault.
const blameTime = time.Minute

// explains tells that the blame explains an end at this time.
func (b blame) explains(end time.Time) bool {
	return b.class != "" && (b.ended || end.Sub(b.at) <= blameTime)
}

// add keeps a blame, unless the process is being ended for an earlier one.
func (b *blames) add(next blame) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.last.ended {
		next.at = time.Now()
		b.last = next
	}
}

func (b *blames) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last = blame{}
}

func (b *blames) now() blame {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.last
}

// Blame keeps a fault of the process; ending tells that the agent ends it for that.
func (p *Process) Blame(class registry.Class, why string, ending bool) {
	p.blamed.add(blame{class: class, why: why, ended: ending})
}

// Condemn says why the current process is ended, whatever its exit will be; final tells that another attempt would end
// the same way.
func (p *Process) Condemn(class registry.Class, why string, final bool) {
	p.blamed.add(blame{class: class, why: why, ended: true, whatever: true, final: final})
}

// soon is how soon a process must end for "address in use" to be blamed on our port (contracts 9).
const soon = 5 * time.Second

// judge finds the cause of an end in the exit, the kernel's counters, the devices and the end of the log.
func (p *Process) judge(x sandbox.Exit, lived time.Duration) *machine.Exit {
	out := &machine.Exit{
		Code: x.Code, Signal: x.Signal, At: x.At.UTC().Truncate(time.Millisecond),
		Peak: cmp.Or(x.Usage.Peak, x.MaxRSS), Limit: x.Usage.Limit,
	}
	p.takeOutcome(x, out)
	blamed := p.blamed.now()
	switch {
	case blamed.whatever:
		out.Code, out.Unseen = nil, true
	case out.Unseen:
	case x.Code == nil && x.Signal == 0:
		out.Unseen, out.Message = true, x.Message
	}
	if out.OK() { // the guard kills: what has ended well did so before its timer ran out
		return out
	}
	if p.Fence.EndedProcess() {
		out.Class, out.CutOff, out.Message = registry.ClassRegistry, true, causeDeadMan
		return out
	}
	marks := p.Marks()
	out.LastOutput = p.lastOutput(marks)
	switch {
	case x.Usage.OOMKills > 0:
		out.OOM, out.Class, out.Message = true, registry.ClassOOM, outOfMemory(x.Usage)
		p.mu.Lock()
		p.starved++
		p.mu.Unlock()
	case blamed.explains(x.At):
		out.OOM, out.Class = blamed.class == registry.ClassOOM, blamed.class
		out.Message, out.Final = blamed.why, blamed.final
	case lived <= soon && len(p.Ports.Numbers()) > 0 && p.addressInUse(marks):
		out.Free, out.Class, out.Message = true, registry.ClassNetwork, causeInUse
	case p.Plan.Script != nil && out.Message == "":
		out.Message = p.explanation(x, p.logs.Tail("stderr.log", marks["stderr.log"], mostTail))
	}
	return out
}

// keepEnd keeps how the last attempt ended, for the status of the next one. A process that the agent has ended did not
// fail.
func (p *Process) keepEnd(x *machine.Exit) *machine.Exit {
	why := x.Why()
	if s := p.Loop.State(); s.Phase == machine.Stopping {
		why = ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastEnd = why
	if why != "" && !x.OK() && !x.CutOff {
		p.failures++
	}
	return x
}

// Marks are the sizes of the logs when the attempt began: its output begins there.
func (p *Process) Marks() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current.marks
}

// explanation is what a package's author needs to know of a failed start. What START itself says last on stderr is its
// reason; what a process says that it left is any line of a log.
func (p *Process) explanation(x sandbox.Exit, stderr string) string {
	w := p.watching()
	if w == nil {
		return slidershell.Advice(pathOf(p.Plan.Script), stderr)
	}
	owner, outcome := w.decided()
	if owner == "" && x.Code != nil {
		return p.complaint(stderr)
	}
	return cmp.Or(slidershell.Advice(pathOf(p.Plan.Script), stderr), outcome.Tip)
}

// takeOutcome puts the end of what START had left behind in the place of START's own 0, which says nothing. A start
// that was ended before anybody could decide what it had left has not succeeded.
func (p *Process) takeOutcome(x sandbox.Exit, out *machine.Exit) {
	w := p.watching()
	if w == nil || !out.OK() {
		return
	}
	switch owner, outcome := w.decided(); {
	case owner == script.Named && !x.Starter, w.isTold():
	case owner != script.Over || x.Starter:
		out.Code, out.Unseen = nil, true
		out.Message = causeLeftover
	case outcome.End != nil && outcome.End.Signal != 0:
		out.Code, out.Signal = nil, outcome.End.Signal
	case outcome.End != nil:
		out.Code = &outcome.End.Code
	}
}

// outOfMemory describes an end for want of memory: the figures, and which limit.
func outOfMemory(u cgroup.Usage) string {
	text := fmt.Sprintf(causeLimitMany, u.OOMKills, u.Limit/megabyte)
	if u.OOMKills == 1 {
		text = fmt.Sprintf(causeLimit, u.Limit/megabyte)
	}
	return text + fmt.Sprintf(", peak %d MB (%s)", u.Peak/megabyte, u.By)
}

// addressInUse tells that the process has logged so since its logs had these sizes.
func (p *Process) addressInUse(marks map[string]int64) bool {
	const most = 4096
	said := p.logs.Tail("stderr.log", marks["stderr.log"], most) + p.logs.Tail("stdout.log", marks["stdout.log"], most)
	return strings.Contains(strings.ToLower(said), causeInUse)
}

// lastOutput is the end of what the process wrote since its logs had these sizes: of its stderr, or else of its stdout.
func (p *Process) lastOutput(marks map[string]int64) string {
	for _, name := range []string{"stderr.log", "stdout.log"} {
		text := p.logs.Tail(name, marks[name], lastWindow)
		if len(text) == lastWindow { // its first word may be the rest of a secret
			text = text[max(0, strings.IndexFunc(text, unicode.IsSpace)):]
		}
		if p.Hide != nil {
			text = p.Hide(text) // before it is cut: half a secret is not known as one
		}
		if text = tail.Last(text, mostLastLines, registry.MostOutput); text != "" {
			return text
		}
	}
	return ""
}

// lastWindow is how much of a log is looked at for its last lines, in bytes.
const lastWindow = 4 * registry.MostOutput

// mostLastLines is how many lines of a failed process's output are reported with its end.
const mostLastLines = 5

// Tail is the end of one of the instance's logs, at most so many bytes and none before from.
func (p *Process) Tail(name string, from, most int64) string { return p.logs.Tail(name, from, most) }

// Report is the state of the process beside the machine's.
type Report struct {
	MemoryMB    int    // the limit in force
	Failures    int    // ends of the process that nobody had asked for
	OutOfMemory int    // ends for want of memory
	LastEnd     string // how the last attempt ended; "": none has
	Sides       []status.Side
	Installing  bool // a command of the package was run
}

// Report reports the state of the process.
func (p *Process) Report() Report {
	sides := p.currentSides().seen()
	p.mu.Lock()
	defer p.mu.Unlock()
	return Report{
		MemoryMB: p.memory, Failures: p.failures, OutOfMemory: p.starved, LastEnd: p.lastEnd, Sides: sides,
		Installing: p.task > 0,
	}
}
