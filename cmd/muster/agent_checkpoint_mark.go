package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/machine"
	"github.com/muster-agent/muster/shim/plan"
)

// resumedName is the file in a checkpoint folder that says which generation went on with it last: what is newer than its step was
// set aside then, so what lies there is of the gang's own branch.
const resumedName = ".muster-resumed"

// resumed is what the file says of a generation.
func (a *agent) resumed(gen int) string {
	return a.id.appID + " " + a.seatNow().Founded().UTC().Format(time.RFC3339Nano) + " " + strconv.Itoa(gen) + "\n"
}

// lastResumed is the generation that a folder last went on with, 0: none of this app's.
func (a *agent) lastResumed(l placement) int {
	a.saves.mu.Lock()
	gen := a.saves.ran
	a.saves.mu.Unlock()
	if onStore(l.dir) {
		return gen
	}
	root, err := openPlace(l.dir, l.place)
	if err != nil {
		return gen
	}
	defer root.Close()
	return max(gen, a.resumedIn(root))
}

func (a *agent) resumedIn(root *os.Root) int {
	text, err := checkpoint.ReadSmall(root, resumedName)
	if err != nil {
		return 0
	}
	gen, err := strconv.Atoi(strings.TrimSpace(string(text[bytes.LastIndexByte(text, ' ')+1:])))
	if err != nil || a.resumed(gen) != string(text) {
		return 0
	}
	return gen
}

// markLate has a folder that was made after its generation began say which that is.
func (a *agent) markLate(p plan.Plan, l placement, s machine.State) {
	a.saves.mu.Lock()
	late := a.saves.ran == s.Gen && a.saves.marked != s.Gen
	a.saves.mu.Unlock()
	if !late || onStore(l.dir) || !a.follows(p, s) {
		return
	}
	root, err := openPlace(l.dir, l.place)
	if err == nil {
		defer root.Close()
		err = a.mark(root, s.Gen)
	}
	if err != nil {
		a.log.Debug("mark the folder of the checkpoints", "dir", l.dir, "err", err)
	}
}

// mark writes resumedName.
func (a *agent) mark(root *os.Root, gen int) error {
	tmp := resumedName + "-" + a.inc[:8] // several agents may write it at once
	if err := checkpoint.WriteNew(root, tmp, a.resumed(gen)); err != nil {
		return err
	}
	if err := root.Rename(tmp, resumedName); err != nil {
		return err
	}
	a.saves.mu.Lock()
	defer a.saves.mu.Unlock()
	a.saves.marked = gen
	return nil
}
