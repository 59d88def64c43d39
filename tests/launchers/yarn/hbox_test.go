package yarn_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/tests/leash"
)

// hbox has hbox-submit take its words to YARN as they are: it waits, ends with HBox's codes, and leaves nothing on HDFS.
func (l *lab) hbox() {
	l.t.Helper()
	script := filepath.Join(l.t.TempDir(), "train.sh")
	if err := os.WriteFile(script, []byte("echo 'reporter progress:0.5' >&2\nexit \"$1\"\n"), 0o600); err != nil {
		l.t.Fatal(err)
	}
	type submission struct {
		name, exit, outcome string
		code                int
		cmd                 *leash.Program
		out, err            bytes.Buffer
	}
	store := l.dir + "/hbox"
	all := []*submission{{name: "good", exit: "0", outcome: "succeeded"}, {name: "bad", exit: "3", outcome: "failed (app-error)", code: 2}}
	for _, s := range all {
		cmd := l.command(muster, "hbox-submit", "--launcher", "yarn", "--store", store, "--registry", l.consul.URL(), "--engine", "process",
			"--app-name", s.name, "--app-type", "PYTORCH", "--worker-num", "1", "--worker-memory", "64", "--driver-memory", "256", "--queue", "default",
			"--files", script, "sh", "train.sh", s.exit)
		cmd.Stdout, cmd.Stderr = &s.out, &s.err
		var err error
		if s.cmd, err = leash.Start(cmd, 2*watchdog); err != nil {
			l.t.Fatal(err)
		}
	}
	for _, s := range all {
		_ = s.cmd.Wait() // the code says it
		id, rest, _ := strings.Cut(s.out.String(), "\n")
		if code := s.cmd.ProcessState.ExitCode(); code != s.code || !applicationID.MatchString(id) || !strings.Contains(rest, ": "+s.outcome) {
			l.t.Errorf("%s: got %d, want %d, the application's id and %s\n%s%s%s", s.name, code, s.code, s.outcome, &s.out, &s.err, l.y.Logs(id))
		}
		l.y.AwaitEnd(id)
	}
	if got := l.hdfs.FsShell(l.t, "-ls", "-C", store); strings.TrimSpace(got) != "" {
		l.t.Errorf("left in the store are %s", got)
	}
}
