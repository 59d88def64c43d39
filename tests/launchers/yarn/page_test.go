package yarn_test

import (
	"os"
	"path/filepath"
	"strings"

	pages "github.com/muster-agent/muster/tests/launchers/job"
	"github.com/muster-agent/muster/tests/leash"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// page does what the page of YARN says, word by word, and looks for what it quotes. The folder of ada is the cluster's user's.
func (l *lab) page() {
	t := l.t
	l.hdfs.FsShell(t, "-mkdir", "-p", "/user/ada")
	l.hdfs.FsShell(t, "-chown", hadoop.Nobody, "/user/ada")
	desk := t.TempDir()
	if err := os.Symlink(muster, filepath.Join(desk, "muster")); err != nil {
		t.Fatal(err)
	}
	lines := pages.Lines(pages.Page(t, "../../../doc/launcher-yarn.md"), "yarn")
	if len(lines) < 6 {
		t.Fatalf("only %d lines", len(lines))
	}
	for _, one := range lines {
		cmd := l.command("bash", "-c", strings.ReplaceAll(one.Text, "consul://127.0.0.1:8500", l.consul.URL()))
		cmd.Dir = desk
		cmd.Env = append(cmd.Env, "PATH="+desk+":"+filepath.Join(l.y.Home(), "bin")+":"+os.Getenv("PATH"))
		var said strings.Builder
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := leash.Run(cmd, 2*watchdog); err != nil {
			t.Fatalf("%s: %v\n%s", one.Text, err, said.String())
		}
		one.Check(t, said.String())
	}
}
