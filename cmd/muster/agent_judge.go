package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-agent/muster/packages/slidershell"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/script"
)

// blame is what was seen to go wrong with a process from outside of it. The zero value is nothing.
type blame struct {
	class registry.Class
	why   string
	at    time.Time
	ended bool // the agent ended the process for it
	// whatever its exit says, it failed: what was ended was not what exited.
	whatever bool
	final    bool // another attempt would end as this one
}

// blameTime is how long after a fault that a process may survive its end is still put down to it.
const blameTime = time.Minute

// explains tells that an end at this time comes from it.
func (b blame) explains(end time.Time) bool {
	return b.class != "" && (b.ended || end.Sub(b.at) <= blameTime)
}

// blame keeps what was seen last, unless the process is being ended for what came before.
func (a *agent) blame(class registry.Class, why string, ending bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.blamed.ended {
		a.blamed = blame{class: class, why: why, at: time.Now(), ended: ending}
	}
}

// soon is how fast a process must end for "address in use" to be our port's fault (contracts 9).
const soon = 5 * time.Second

// judge reads what the exit, the counters of the kernel, the devices and the end of the log say of the cause.
func (a *agent) judge(x sandbox.Exit, lived time.Duration) *machine.Exit {
	out := &machine.Exit{Code: x.Code, Signal: x.Signal, At: x.At.UTC().Truncate(time.Millisecond), Peak: cmp.Or(x.Usage.Peak, x.MaxRSS), Limit: x.Usage.Limit}
	gone, served := a.leftBehind(out)
	if gone.PID != 0 {
		if x, err := a.currentGuard().Ended(context.Background(), gone.PID); err == nil { // it was short, and its end is known
			out.Code, out.Signal, gone = x.Code, x.Signal, script.PID{}
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.blamed.whatever:
		out.Code, out.Unseen = nil, true
	case x.Starter && served:
		out.Code, out.Unseen, out.Message = nil, true, "what START had left behind is gone"
	case gone.PID != 0:
		out.Code, out.Unseen = nil, true
		out.Message = fmt.Sprintf("START ended with 0, but process %d of %s was gone", gone.PID, gone.File)
	case x.Code == nil && x.Signal == 0:
		out.Unseen, out.Message = true, x.Message
	}
	if out.OK() { // the guard kills: what has ended well did so before its timer ran out
		return out
	}
	if a.member.Fence().EndedProcess() {
		out.Class, out.CutOff, out.Message = registry.ClassRegistry, true, "ended by the guard's dead-man timer"
		return out
	}
	switch {
	case x.Usage.OOMKills > 0:
		out.OOM, out.Class, out.Message = true, registry.ClassOOM, outOfMemory(x.Usage)
		a.starved++
	case a.blamed.explains(x.At):
		out.OOM, out.Class, out.Message, out.Final = a.blamed.class == registry.ClassOOM, a.blamed.class, a.blamed.why, a.blamed.final
	case lived <= soon && len(a.portOf) > 0 && a.addressInUse(a.marks):
		out.Free, out.Class, out.Message = true, registry.ClassNetwork, "address already in use"
	case a.plan.Script != nil && out.Message == "":
		out.Message = slidershell.Advice(pathOf(a.plan.Script), a.tail("stderr.log", a.marks["stderr.log"], mostTail))
	}
	return out
}

// keepEnd keeps how the last attempt ended, for who asks in the next one. What this agent has ended itself did not fail.
func (a *agent) keepEnd(x *machine.Exit) *machine.Exit {
	why := x.Why()
	if s := a.loop.State(); s.Phase == machine.Stopping {
		why = ""
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastEnd = why
	return x
}

// leftBehind looks at what a script's START that ended with 0 has left: a process that was gone as soon as START was,
// or something that served.
func (a *agent) leftBehind(x *machine.Exit) (gone script.PID, served bool) {
	a.mu.Lock()
	w := a.watch
	a.mu.Unlock()
	if w == nil || !x.OK() {
		return gone, false
	}
	gone, _ = w.lost()
	return gone, w.served()
}

// outOfMemory is the figures of an end for want of memory, and who counted.
func outOfMemory(u sandbox.Usage) string {
	text := fmt.Sprintf("%d processes killed at the limit of %d MB", u.OOMKills, u.Limit/megabyte)
	if u.OOMKills == 1 {
		text = fmt.Sprintf("killed at the limit of %d MB", u.Limit/megabyte)
	}
	return text + fmt.Sprintf(", peak %d MB (%s)", u.Peak/megabyte, u.By)
}

// addressInUse tells that the process said so since its logs had these sizes.
func (a *agent) addressInUse(marks map[string]int64) bool {
	said := a.tail("stderr.log", marks["stderr.log"], 4096) + a.tail("stdout.log", marks["stdout.log"], 4096)
	return strings.Contains(strings.ToLower(said), "address already in use")
}

// logSizes are how far the instance's logs go: what an attempt says begins there.
func (a *agent) logSizes(in registry.Instance) map[string]int64 {
	dir := filepath.Join(a.logDir, in.String())
	return map[string]int64{"stdout.log": files.PlainSize(filepath.Join(dir, "stdout.log")), "stderr.log": files.PlainSize(filepath.Join(dir, "stderr.log"))}
}

// tail is the end of one of the instance's logs, at most so many bytes and none before from.
func (a *agent) tail(name string, from, most int64) string {
	f, err := files.OpenPlain(filepath.Join(a.logDir, a.loop.State().Instance.String(), name))
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	if info.Size() < from {
		from = 0 // rotated since
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(from, info.Size()-most), most))
	if err != nil {
		return ""
	}
	return string(text)
}
