package main

import (
	"bytes"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/checkpoint"
	"github.com/muster-agent/muster/shim/machine"
)

// resumedName is the file in a checkpoint folder that says which generation went on with it last: what is newer than its step was
// set aside then, so what lies there is of the gang's own branch.
const resumedName = ".muster-resumed"

// markOf is what the file says of a generation.
func (m *checkpointManager) markOf(gen int) string {
	return m.cfg.AppID + " " + m.cfg.Registry().Founded().UTC().Format(time.RFC3339Nano) + " " + strconv.Itoa(gen) + "\n"
}

// lastResumed is the generation that a folder last went on with, 0: none of this app's.
func (m *checkpointManager) lastResumed(l placement) int {
	m.mu.Lock()
	gen := m.resumed
	m.mu.Unlock()
	if onStore(l.dir) {
		return gen
	}
	root, err := openPlace(l.dir, l.place)
	if err != nil {
		return gen
	}
	defer root.Close()
	return max(gen, m.resumedIn(root))
}

func (m *checkpointManager) resumedIn(root *os.Root) int {
	text, err := checkpoint.ReadSmall(root, resumedName)
	if err != nil {
		return 0
	}
	gen, err := strconv.Atoi(strings.TrimSpace(string(text[bytes.LastIndexByte(text, ' ')+1:])))
	if err != nil || m.markOf(gen) != string(text) {
		return 0
	}
	return gen
}

// markLate has a folder that was made after its generation began say which that is.
func (m *checkpointManager) markLate(l placement, s machine.State) {
	m.mu.Lock()
	late := m.resumed == s.Gen && m.marked != s.Gen
	m.mu.Unlock()
	if !late || onStore(l.dir) || !m.follows(s) {
		return
	}
	root, err := openPlace(l.dir, l.place)
	if err == nil {
		defer root.Close()
		err = m.mark(root, s.Gen)
	}
	if err != nil {
		m.cfg.Log.Debug("mark the folder of the checkpoints", "dir", l.dir, "err", err)
	}
}

// mark writes resumedName.
func (m *checkpointManager) mark(root *os.Root, gen int) error {
	tmp := resumedName + "-" + m.cfg.Inc[:8] // several agents may write it at once
	if err := checkpoint.WriteNew(root, tmp, m.markOf(gen)); err != nil {
		return err
	}
	if err := root.Rename(tmp, resumedName); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marked = gen
	return nil
}
