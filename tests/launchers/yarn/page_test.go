package yarn_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/muster-agent/muster/tests/leash"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// page does what the page of YARN says, word by word, and looks for what it quotes. The folder of ada is the cluster's user's.
func (l *lab) page() {
	t := l.t
	l.hdfs.FsShell(t, "-mkdir", "-p", "/user/ada")
	l.hdfs.FsShell(t, "-chown", hadoop.Nobody, "/user/ada")
	text := l.read("../../../doc/yarn.md")
	desk := t.TempDir()
	if err := os.Symlink(muster, filepath.Join(desk, "muster")); err != nil {
		t.Fatal(err)
	}
	typed := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(text, -1) {
		for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
			line, quoted, _ := strings.Cut(step, "\n")
			cmd := l.command("bash", "-c", strings.ReplaceAll(line, "consul://127.0.0.1:8500", l.consul.URL()))
			cmd.Dir = desk
			cmd.Env = append(cmd.Env, "PATH="+desk+":"+filepath.Join(l.y.Home(), "bin")+":"+os.Getenv("PATH"))
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := leash.Run(cmd, watchdog); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out.String())
			}
			for said := range strings.Lines(quoted) {
				if !says(out.String(), strings.TrimSpace(said)) {
					t.Errorf("%s: does not say %q but\n%s", line, strings.TrimSpace(said), out.String())
				}
			}
			typed++
		}
	}
	if typed < 6 {
		t.Errorf("only %d lines", typed)
	}
}

// says tells whether an output has a line that a page quotes, with … for whatever stands there.
func says(output, quoted string) bool {
	var parts []string
	for part := range strings.SplitSeq(quoted, "…") {
		parts = append(parts, regexp.QuoteMeta(strings.TrimSpace(part)))
	}
	return regexp.MustCompile(`(?m)^\s*` + strings.Join(parts, ".*") + `\s*$`).MatchString(output)
}
