package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// TestScripts follows the pages on a script of PyTorch and of TensorFlow, where `python` has the framework.
func TestScripts(t *testing.T) {
	t.Parallel()
	for name, framework := range map[string]string{"doc/pytorch.md": "torch", "doc/tensorflow.md": "tensorflow"} {
		t.Run(framework, func(t *testing.T) {
			t.Parallel()
			where, code := command(t, checkout, nil, "scripts/lab/python", "where", framework)
			interpreter := strings.TrimSpace(where)
			if _, err := exec.LookPath(interpreter); code != 0 || err != nil {
				need.Skip(t, "no "+framework+" (make it with scripts/lab/python "+framework+")")
			}
			d := newDesk(t)
			d.write("bin/python", "#!/bin/sh\nexec "+interpreter+" \"$@\"\n")
			d.must(os.Chmod(filepath.Join(d.dir, "bin/python"), 0o755))
			typed := 0
			for _, s := range steps(read(t, name)) {
				if s.file != "" {
					d.write(s.file, s.text)
					continue
				}
				// the framework lies in a folder that containers and other ids do not see
				s.text = "export MUSTER_AGENT_ENGINE=process MUSTER_AGENT_USERNS=host; " + s.text
				follows(t, d, name, "", s.typed)
				typed++
			}
			if typed < 8 {
				t.Errorf("only %d lines", typed)
			}
		})
	}
}
