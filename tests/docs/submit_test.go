package docs_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/nomadserver"
)

// TestSubmitGuide does what the guide of muster submit says, with a real Nomad.
func TestSubmitGuide(t *testing.T) {
	const name = "doc/submit.md"
	python(t)
	nomad := nomadserver.Start(t, nomadserver.Options{})
	consul := consulserver.Start(t, consulserver.Options{})
	t.Setenv("NOMAD_ADDR", "http://"+nomad.HTTPAddr)
	t.Setenv("CONSUL_HTTP_ADDR", consul.HTTPAddr)
	t.Cleanup(func() { _ = os.RemoveAll(filepath.Join("/run/muster/apps", "hand-submit")) }) // Nomad's tasks have the host's state folder
	d := newDesk(t)
	typed := 0
	for _, s := range steps(read(t, name)) {
		follows(t, d, name, "", s.typed)
		typed++
	}
	if typed < 7 {
		t.Errorf("only %d lines", typed)
	}
}
