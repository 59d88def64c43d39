package checkpoint

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/machine"
)

// markName is the file in a checkpoint folder that names the last generation that resumed there. Everything newer than
// the step of that generation was quarantined then, so what lies in the folder belongs to the gang's own branch.
const markName = ".muster-resumed"

// markText is the content of the mark of a generation.
func (m *Manager) markText(gen int) string {
	founded := m.cfg.Registry().Founded().UTC().Format(time.RFC3339Nano)
	return m.cfg.AppID + " " + founded + " " + strconv.Itoa(gen) + "\n"
}

// lastResumed is the last generation that resumed in a folder; 0: none of this app.
func (m *Manager) lastResumed(l location) int {
	m.mu.Lock()
	gen := m.resumed
	m.mu.Unlock()
	if onStore(l.dir) {
		return gen
	}
	root, err := m.open(l)
	if err != nil {
		return gen
	}
	defer root.Close()
	return max(gen, m.markedGeneration(root))
}

// markedGeneration reads the mark. A process may write anything there: only the exact text of this app counts.
func (m *Manager) markedGeneration(root files.UserFolder) int {
	text, err := readSmall(root, markName)
	if err != nil {
		return 0
	}
	gen, err := strconv.Atoi(strings.TrimSpace(string(text[bytes.LastIndexByte(text, ' ')+1:])))
	if err != nil || m.markText(gen) != string(text) {
		return 0
	}
	return gen
}

// markLate marks a folder that its process made after the generation began.
func (m *Manager) markLate(l location, s machine.State) {
	m.mu.Lock()
	late := m.resumed == s.Gen && m.marked != s.Gen
	m.mu.Unlock()
	if !late || onStore(l.dir) || !m.follows(s) {
		return
	}
	root, err := m.open(l)
	if err == nil {
		defer root.Close()
		err = m.mark(root, s.Gen)
	}
	if err != nil {
		m.cfg.Log.Debug("marking the checkpoint folder failed", "dir", l.dir, "err", err)
	}
}

func (m *Manager) mark(root files.UserFolder, gen int) error {
	tmp := markName + "-" + m.cfg.Inc[:8] // several agents may write it at once
	if err := writeNew(root, tmp, m.markText(gen)); err != nil {
		return err
	}
	if err := root.Rename(tmp, markName); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.marked = gen
	return nil
}
