// Package systemd_test runs gangs by a real systemd, with the units that `muster render systemd` writes: what an operator
// sees of them in systemctl, and that no rank ever runs twice. The life of units and what limits do are tried in a machine of
// namespaces, and in the emulated one, where the kernel keeps limits (scripts/test-v2); the page in the first alone.
package systemd_test

import (
	"bytes"
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/leash"
	"github.com/muster-agent/muster/tests/servers/systemdmachine"
	"github.com/muster-agent/muster/tests/servers/tinygang"
)

// watchdog bounds every wait. It only ever ends a test that has gone wrong.
var watchdog = 2 * time.Minute

// muster is the binary under test. Set before the first test, never after.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		if os.Getenv("MUSTER_MACHINE") != "" { // an emulated one: each instruction takes its time
			watchdog *= 4
		}
		return m.Run()
	}))
}

// host is a machine that systemd runs: this one, or one in it.
type host struct {
	t *testing.T
	// at is where a file of the host's lies for this test.
	at func(path string) string
	// command is a program there, as root.
	command func(name string, args ...string) *exec.Cmd
	// lab is a folder that it sees as there: outside and inside.
	outside, inside string
	units           string // where it looks for units
}

// inMachine is a machine in namespaces, which sees these of our files and folders: its path by ours.
func inMachine(t *testing.T, binds map[string]string) (host, *systemdmachine.Machine) {
	t.Helper()
	m := systemdmachine.Start(t, systemdmachine.Options{Binds: binds})
	return host{t: t, at: m.Path, command: m.Command, outside: filepath.Join(m.Dir, "lab"), inside: "/lab", units: "/etc/systemd/system"}, m
}

// withMuster is muster where the units look for it.
func withMuster() map[string]string { return map[string]string{muster: rendered} }

const rendered = "/usr/local/bin/muster"

// inThis is the emulated machine that this test runs in.
func inThis(t *testing.T) host {
	t.Helper()
	dir, err := os.MkdirTemp("/srv", "systemd-") //nolint:usetesting // units have a /tmp of their own
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // the machine is thrown away
	command := func(name string, args ...string) *exec.Cmd { return exec.CommandContext(t.Context(), name, args...) }
	return host{t: t, at: func(path string) string { return path }, command: command, outside: dir, inside: dir, units: "/run/systemd/system"}
}

// run is what a program of the host's says on stdout; the test ends when it fails.
func (h host) run(name string, args ...string) string {
	h.t.Helper()
	cmd := h.command(name, args...)
	var out, bad bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &bad
	if err := leash.Run(cmd, watchdog); err != nil {
		h.t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out.Bytes(), bad.Bytes())
	}
	return out.String()
}

// property is one of a unit's.
func (h host) property(unit, name string) string {
	h.t.Helper()
	return strings.TrimSpace(h.run("systemctl", "show", "--property="+name, "--value", unit))
}

// program is what every instance runs, with sh. It notes its start as package tinygang does, with the checkpoint that it goes
// on from in place of its folder, and in the file `two` that another of its rank runs. USR1 has it save a step, a worker 1
// taking its time; it ends when a file says so, with the code in it.
const program = `dir=$MUSTER_CHECKPOINT_DIR own=$MUSTER_CHECKPOINT_DIR/$MUSTER_INSTANCE
mkdir -p "$own"
exec 9>"$dir/lock-$MUSTER_INSTANCE"
flock -n 9 || echo "$MUSTER_INSTANCE" >>"$dir/two"
save() {
	if [ "$MUSTER_INSTANCE" = worker-1 ]; then sleep "${SLOW:-0}" 9>&-; fi
	echo "$MUSTER_INSTANCE" >"$own/.new"
	mv "$own/.new" "$own/step-$MUSTER_ATTEMPT"
}
trap save USR1
trap 'exit 0' TERM
echo "$MUSTER_INSTANCE $MUSTER_GENERATION $MUSTER_ATTEMPT $MUSTER_HOST $MUSTER_PORT ${MUSTER_CHECKPOINT:-none}" >>"$dir/starts"
until [ -e "$dir/go" ]; do sleep 0.1 9>&-; done
exit "$(cat "$dir/code")"`

// gang is an app whose units are laid out.
type gang struct {
	tinygang.Gang
	host   host
	name   string
	target string
}

// lay writes an app of one ps and so many workers, has its units rendered with further words, and lays them out.
func (h host) lay(name string, workers int, registry string, settings map[string]string, words ...string) gang {
	h.t.Helper()
	all := map[string]string{"muster.command": program, "muster.checkpoint.pattern": "step-*", "muster.checkpoint.signal": "USR1"}
	maps.Copy(all, settings)
	folder := filepath.Join(h.outside, name)
	app := tinygang.Write(h.t, folder, workers, all)
	render := append([]string{
		"render", "systemd", app.App, "--app", filepath.Join(h.inside, name, "app"), "--app-id", name, "--run", "1",
		"--registry", registry, "-o", filepath.Join(folder, "units"),
	}, words...)
	ctx, cancel := context.WithTimeout(h.t.Context(), watchdog)
	defer cancel()
	if out, err := exec.CommandContext(ctx, muster, render...).CombinedOutput(); err != nil {
		h.t.Fatalf("muster %s: %v\n%s", strings.Join(render, " "), err, out)
	}
	h.run("cp", "-r", filepath.Join(h.inside, name, "units")+"/.", h.units)
	h.run("systemctl", "daemon-reload")
	app.Dir = h.at(filepath.Join("/var/lib/muster", name, "checkpoint"))
	return gang{app, h, name, "muster-" + name + ".target"}
}

// unit is an instance's.
func (g gang) unit(instance string) string { return "muster-" + g.name + "@" + instance + ".service" }

// dropIn is what an operator adds to one instance's unit.
func (g gang) dropIn(instance, lines string) {
	g.host.t.Helper()
	dir := g.host.at(filepath.Join(g.host.units, g.unit(instance)+".d"))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		g.host.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "operator.conf"), []byte("[Service]\n"+lines+"\n"), 0o644); err != nil {
		g.host.t.Fatal(err)
	}
	g.host.run("systemctl", "daemon-reload")
}
