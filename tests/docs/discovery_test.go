package docs_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// TestDiscoveryGuide does what the guide of discovery says, with a real Consul and its DNS.
func TestDiscoveryGuide(t *testing.T) {
	const name = "doc/discovery.md"
	python(t)
	if _, err := exec.LookPath("curl"); err != nil {
		need.Skip(t, "needs curl")
	}
	consul := consulserver.Start(t, consulserver.Options{DNS: true})
	host, port, _ := strings.Cut(consul.DNSAddr, ":")
	d := newDesk(t)
	defer stopAll(d)
	defer d.types("bin/muster stop s1")
	d.write("bin/dig", read(t, "tests/docs/dig.py"))
	d.must(os.Chmod(filepath.Join(d.dir, "bin", "dig"), 0o755))
	typed := 0
	for _, s := range steps(read(t, name)) {
		if s.file != "" {
			d.write(s.file, s.text)
			continue
		}
		s.text = strings.NewReplacer("127.0.0.1:8500", consul.HTTPAddr, "@127.0.0.1 -p 8600", "@"+host+" -p "+port).Replace(s.text)
		follows(t, d, name, "", s.typed)
		typed++
	}
	if typed < 12 {
		t.Errorf("only %d lines", typed)
	}
}
