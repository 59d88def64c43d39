// Package training_test runs the catalog's packages for PyTorch, Horovod, JAX, XGBoost, LightGBM, MXNet and Jupyter as
// their users do: the built muster, the command line, the real frameworks, real Consul. What is asserted is what the processes printed
// and what muster says of the run. Every wait is for a line or an end, and a watchdog ends only a test that has gone wrong.
package training_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/binary"
	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// checkout is the root of the repository, seen from this folder.
const checkout = "../.."

// muster is the program under test; TestMain builds it.
var muster string

func TestMain(m *testing.M) {
	os.Exit(binary.Main(func(built string) int {
		muster = built
		return m.Run()
	}))
}

// python is the interpreter that `scripts/lab/python NAME` made.
func python(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command(filepath.Join(checkout, "scripts/lab/python"), "where", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(string(out))
	if _, err := exec.LookPath(path); err != nil {
		need.Skip(t, "no "+name+" (make it with scripts/lab/python "+name+"): "+err.Error())
	}
	return path
}

// job is one run of a package of the catalog.
type job struct {
	commandline.Host
	*commandline.Command
	app    string
	consul *consulserver.Server
}

// launch starts the catalog's package by the Python that has the framework, on a Consul of its own.
func launch(t *testing.T, app, framework string, more ...string) job {
	t.Helper()
	at := python(t, framework)
	consul := consulserver.Start(t, consulserver.Options{})
	h := commandline.NewHost(t, muster)
	args := append([]string{
		"run", "catalog:" + app, "--app-id", app, "--registry", consul.URL(), "--work-dir", commandline.WorkFolder(t), "--json",
		"--set", "muster.python=" + at,
	}, more...)
	return job{Host: h, Command: h.Start(args...), app: app, consul: consul}
}

// succeeds waits for the end, which has to be a success in that generation.
func (j job) succeeds(t *testing.T, generations int) {
	t.Helper()
	got := commandline.Parse[commandline.Report](t, j.Succeed())
	if got.Outcome != "succeeded" || got.Generations != generations {
		t.Errorf("got outcome %q after %d generations, want succeeded after %d\n%s", got.Outcome, got.Generations, generations, j.End())
	}
}
