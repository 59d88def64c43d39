// Package tests holds what is asserted about the tree as a whole: who imports whom, and what it is built on.
// Black-box tests and their tools live in the folders below.
package tests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/muster-agent/muster"

// room is a folder; with everything below it, unless other rooms of the table lie there.
type room struct {
	path string
	// may are the rooms or packages it may import beside itself; `*` is every room of the product.
	may []string
	// pure rooms know no clock, network, disk or process.
	pure bool
}

// rooms says who may look into which room. A new room gets a line here, in the commit that makes it.
var rooms = []room{
	{path: "appdef", pure: true}, // reads fs.FS
	{path: "appdef/slider", may: []string{"appdef"}, pure: true},
	{path: "appdef/pai", may: []string{"appdef"}, pure: true},
	{path: "appdef/shellwords", pure: true},
	{path: "appdef/hbox", may: []string{"appdef", "appdef/shellwords"}, pure: true},
	{path: "appdef/program", may: []string{"appdef", "appdef/shellwords"}, pure: true},
	{path: "appdef/convert", may: []string{"appdef", "appdef/slider", "appdef/pai", "appdef/hbox"}, pure: true},

	{path: "registry", pure: true}, // what is kept; decides nothing
	{path: "registry/conductor", may: []string{"registry"}, pure: true},
	{path: "registry/consul", may: []string{"registry", "registry/conductor"}},
	{path: "registry/embedded", may: []string{"registry"}},
	{path: "registry/registrytest", may: []string{"registry", "registry/conductor", "tests/need"}},

	{path: "packages", may: []string{"shim/store", "packages/image", "packages/catalog", "packages/slidershell", "packages/sign"}},
	{path: "packages/cachedir", may: []string{"shim/wait"}},
	{path: "packages/image", may: []string{"packages/cachedir", "shim/wait"}}, // knows no package format
	{path: "packages/catalog"},
	{path: "packages/slidershell", may: []string{"packages/python2"}},
	{path: "packages/sign"},
	{path: "packages/modernize", may: []string{"packages/python2"}},
	{path: "packages/python2"},
	{path: "packages/skeleton", may: []string{"packages/catalog"}},
	{path: "packages/lint", may: []string{"appdef", "appdef/slider", "packages", "packages/python2", "packages/slidershell", "shim/files", "shim/plan", "shim/script"}},
	{path: "packages/inspect", may: []string{"appdef", "appdef/slider", "packages", "packages/catalog", "packages/sign"}},
	{
		path: "packages/ship",
		may:  []string{"shim/store/schemes", "shim/store/cache", "packages", "packages/cachedir", "shim/store", "packages/sign", "shim/exit", "shim/openapp"},
	},

	{path: "shim/hostlock", may: []string{"shim/ownfolder"}},
	{path: "shim/ownfolder"},
	{path: "shim/mask"},
	{path: "shim/plan", may: []string{"appdef", "registry", "registry/conductor"}, pure: true},
	{path: "shim/plan/sheet", may: []string{"appdef", "registry", "shim/plan"}, pure: true},
	{path: "shim/frameworks", may: []string{"shim/plan", "registry"}, pure: true},
	{path: "shim/render", may: []string{"appdef", "registry", "shim/plan", "shim/launcher"}, pure: true},
	{path: "shim/submit", may: []string{
		"shim/gate",
		"appdef", "appdef/hbox", "packages", "shim/store", "registry", "registry/consul", "shim/exit", "shim/gpu", "shim/launcher", "shim/launcher/job",
		"shim/launcher/known", "shim/openapp", "shim/ownfolder", "shim/plan", "shim/render", "shim/status",
	}},
	{path: "shim/store", may: []string{"shim/wait"}}, // knows no package format
	{path: "shim/store/file", may: []string{"shim/store"}},
	{path: "shim/store/web", may: []string{"shim/store"}},
	{path: "shim/store/hdfs", may: []string{"shim/store"}},
	{path: "shim/store/cache", may: []string{"shim/store", "shim/store/file", "packages/cachedir", "shim/wait"}},
	{path: "shim/store/schemes", may: []string{"shim/store", "shim/store/file", "shim/store/web", "shim/store/hdfs"}},
	{path: "shim/store/storetest", may: []string{"shim/store"}},
	{path: "shim/files", may: []string{
		"shim/plan", "registry", "shim/fault", "shim/ownfolder", "shim/policy", "shim/sandbox/subids", "shim/store", "shim/store/file",
	}},
	{path: "shim/policy", may: []string{
		"appdef", "packages/sign", "shim/exit", "shim/notices", "shim/ownfolder", "shim/sandbox/seccomp",
		"shim/wording",
	}},
	{
		path: "shim/doctor",
		may: []string{
			"appdef", "packages/cachedir", "registry", "registry/consul", "shim/gpu", "shim/hadoop", "shim/launcher",
			"shim/member", "shim/ownfolder", "shim/policy", "shim/ports", "shim/prepare", "shim/sandbox",
			"shim/sandbox/cgroup", "shim/sandbox/guard", "shim/status", "shim/store/hdfs",
		},
	},
	{path: "shim/keyring"},
	{path: "shim/signals"},
	{path: "shim/logtimes", may: []string{"shim/files"}},
	{path: "shim/progress", pure: true},
	{path: "shim/tail", may: []string{"shim/files", "shim/progress", "shim/wording"}},
	{path: "shim/wait"},
	{path: "shim/wording", pure: true},
	{path: "shim/hadoop", may: []string{"shim/store/schemes", "shim/store", "shim/store/hdfs", "shim/exit", "shim/files", "shim/plan"}},
	{
		path: "shim/openapp",
		may: []string{
			"shim/store/file",
			"shim/store/cache",
			"appdef", "appdef/pai", "appdef/slider", "packages", "packages/cachedir", "packages/catalog", "shim/store", "shim/store/hdfs", "packages/sign",
			"shim/exit", "shim/hadoop", "shim/plan", "shim/policy",
		},
	},
	{path: "shim", may: []string{"*"}}, // the agent: it wires the rooms below
	{
		path: "shim/dryrun",
		may: []string{
			"appdef", "registry", "shim/exit", "shim/fault", "shim/frameworks", "shim/hadoop", "shim/launcher",
			"shim/launcher/known", "shim/mask", "shim/member", "shim/openapp", "shim/plan", "shim/policy", "shim/prepare",
			"shim/secret", "shim/status",
		},
	},
	{path: "shim/exit", may: []string{"appdef", "registry"}, pure: true},
	{path: "shim/fault", may: []string{"registry"}, pure: true},
	{path: "shim/secret", may: []string{
		"shim/fault", "shim/files", "shim/hostlock", "shim/keyring", "shim/ownfolder", "shim/policy",
	}},
	{path: "shim/notify"},
	{path: "shim/silence"},
	{path: "shim/samples"},
	{path: "shim/metrics", may: []string{"shim/journal/timeline", "shim/samples", "shim/status"}, pure: true},
	{path: "shim/notices", may: []string{"registry", "shim/machine"}, pure: true},
	{path: "shim/notices/delivery", may: []string{"shim/notices", "shim/ownfolder", "shim/tail", "shim/wait"}},
	{path: "shim/notify/message", may: []string{
		"registry", "shim/exit", "shim/machine", "shim/member", "shim/notify", "shim/status", "shim/wording",
	}, pure: true},
	{path: "shim/journal/timeline", may: []string{"shim/journal", "shim/machine"}, pure: true},
	{path: "shim/journal", may: []string{"registry", "shim/files", "shim/linequeue", "shim/machine", "shim/status"}},
	{path: "shim/history", may: []string{
		"appdef", "registry", "registry/consul", "shim/files", "shim/journal", "shim/logtimes", "shim/samples", "shim/status",
		"shim/store", "shim/store/file", "shim/store/schemes", "shim/tail",
	}},
	{path: "shim/linequeue"},
	{path: "shim/login", may: []string{"appdef/shellwords", "registry", "shim/status", "shim/wording"}},
	{path: "shim/workdir", may: []string{
		"appdef", "appdef/pai", "registry", "shim/exit", "shim/fault", "shim/files", "shim/hostlock", "shim/openapp", "shim/plan", "shim/status",
		"shim/wording", "shim/wait",
	}},
	{path: "shim/prepare", may: []string{"appdef", "packages", "packages/cachedir", "shim/store", "packages/image", "packages/slidershell", "registry", "shim/exit", "shim/fault", "shim/files", "shim/gpu", "shim/gpu/grant", "shim/hadoop", "shim/hostlock", "shim/openapp", "shim/ownfolder", "shim/plan", "shim/policy", "shim/ports", "shim/sandbox", "shim/sandbox/cgroup", "shim/sandbox/container", "shim/sandbox/guard", "shim/sandbox/proc", "shim/secret", "shim/status", "shim/workdir"}},
	{path: "shim/gate", may: []string{"appdef", "shim/status"}},
	{path: "shim/process", may: []string{"shim/gate", "shim/tail", "shim/files", "shim/plan", "registry", "registry/conductor", "shim/exit", "shim/fault", "shim/frameworks", "shim/machine", "shim/ports", "shim/sandbox", "shim/sandbox/cgroup", "shim/sandbox/proc", "shim/script", "shim/side", "shim/status", "packages/slidershell", "shim/wait"}},
	{path: "shim/machine", may: []string{"shim/plan", "registry", "registry/conductor", "shim/exit"}}, // the rest through the interfaces it declares
	{path: "shim/launcher", may: []string{"shim/plan", "registry"}, pure: true},
	{path: "shim/launcher/job", may: []string{"shim/render", "shim/store"}},
	{path: "shim/launcher/k8s", may: []string{"appdef", "shim/plan", "shim/launcher", "shim/render"}, pure: true},
	{path: "shim/launcher/k8s/client", may: []string{"shim/launcher/job"}},
	{path: "shim/launcher/nomad", may: []string{"appdef", "shim/plan", "shim/launcher", "shim/render"}, pure: true},
	{path: "shim/launcher/nomad/client", may: []string{"shim/launcher", "shim/launcher/job"}},
	{path: "shim/launcher/slurm", may: []string{"appdef", "shim/plan", "shim/launcher", "shim/render"}, pure: true},
	{path: "shim/launcher/slurm/client", may: []string{"shim/launcher/job"}},
	{path: "shim/launcher/systemd", may: []string{"appdef", "shim/plan", "shim/launcher", "shim/render"}, pure: true},
	{path: "shim/launcher/systemd/client", may: []string{"shim/launcher/job"}},
	{path: "shim/launcher/yarn", may: []string{"appdef", "shim/plan", "shim/launcher", "shim/render"}, pure: true},
	{path: "shim/launcher/yarn/client", may: []string{"shim/store", "shim/store/hdfs", "shim/exit", "shim/launcher/job", "shim/launcher/yarn"}},
	{path: "shim/launcher/known", may: []string{ // the table names them all
		"appdef", "shim/plan", "shim/render", "shim/launcher", "shim/launcher/job",
		"shim/launcher/k8s", "shim/launcher/nomad", "shim/launcher/slurm", "shim/launcher/systemd", "shim/launcher/yarn",
		"shim/launcher/k8s/client", "shim/launcher/nomad/client", "shim/launcher/slurm/client", "shim/launcher/systemd/client",
		"shim/launcher/yarn/client",
	}},
	{path: "shim/launcher/route"},
	{path: "shim/sandbox", may: []string{"shim/ownfolder"}}, // of its subids and container alone
	{path: "shim/gpu", may: []string{"shim/plan", "registry", "shim/hostlock", "shim/ownfolder"}},
	{path: "shim/gpu/grant", may: []string{"appdef", "shim/plan", "registry", "shim/fault", "shim/gpu", "shim/sandbox", "shim/sandbox/container"}},
	{path: "shim/ports", may: []string{"appdef", "shim/plan", "registry", "shim/hostlock", "shim/fault"}},
	{path: "shim/script", may: []string{"appdef", "shim/plan", "registry"}, pure: true},
	{path: "shim/side", pure: true},
	{path: "shim/publisher", may: []string{"appdef", "shim/plan", "registry", "registry/consul"}},
	{path: "shim/paireport", may: []string{"shim/plan", "registry"}, pure: true},
	{path: "shim/status", may: []string{
		"shim/plan", "registry", "shim/exit", "shim/files", "shim/logtimes", "shim/samples", "shim/sandbox/proc", "shim/tail",
	}},
	{path: "shim/member", may: []string{
		"appdef", "registry", "registry/conductor", "registry/consul", "shim/exit", "shim/files", "shim/gpu", "shim/launcher", "shim/launcher/known", "shim/launcher/route", "shim/machine",
		"shim/plan", "shim/ports", "shim/sandbox", "shim/status", "shim/wait", "shim/wording",
	}},
	{path: "shim/data", may: []string{"appdef", "shim/data/transfer", "shim/plan", "shim/files", "shim/store"}},
	{path: "shim/data/manager", may: []string{
		"appdef", "packages", "packages/cachedir", "registry", "registry/conductor", "registry/consul", "shim/data",
		"shim/data/formats", "shim/data/stores", "shim/data/stream", "shim/data/transfer", "shim/fault", "shim/files", "shim/journal",
		"shim/machine", "shim/openapp", "shim/plan", "shim/sandbox", "shim/status", "shim/store", "shim/store/cache",
		"shim/store/file", "shim/store/hdfs", "shim/tail", "shim/wait", "shim/wording", "shim/workdir",
	}},
	{path: "shim/data/formats", may: []string{"registry", "shim/fault", "shim/plan", "shim/store"}},
	{path: "shim/data/stores", may: []string{
		"shim/files", "shim/hadoop", "shim/plan", "shim/secret", "shim/store", "shim/store/hdfs", "shim/store/schemes",
	}},
	{path: "shim/data/stream", may: []string{"shim/data/transfer", "shim/plan", "shim/files", "shim/store"}},
	{path: "shim/data/transfer", may: []string{"shim/store"}},
	{path: "shim/checkpoint", may: []string{
		"shim/checkpoint/format", "shim/machine", "shim/plan", "shim/files", "shim/fault", "shim/hostlock", "shim/data/transfer", "shim/status",
		"shim/store", "shim/wording", "appdef", "registry", "registry/conductor",
	}},
	{path: "shim/checkpoint/format", may: []string{"shim/store"}},

	{path: "cmd/internal/madeapp", may: []string{"appdef", "appdef/slider", "shim/exit", "shim/workdir"}},
	{path: "cmd/internal/oneline", may: []string{"appdef", "appdef/program", "cmd/internal/flags", "cmd/internal/madeapp", "packages", "shim/exit", "shim/wording", "shim/workdir"}},
	{path: "cmd/internal/hboxjob", may: []string{"cmd/internal/apps", "shim/gate", "appdef", "appdef/hbox", "cmd/internal/madeapp", "packages", "registry", "shim/exit", "shim/status", "shim/submit"}},
	{path: "cmd/internal/run", may: []string{
		"cmd/internal/apps", "cmd/internal/console", "cmd/internal/detach", "cmd/internal/flags", "appdef", "appdef/pai", "registry", "registry/consul", "shim/mask", "shim/wording",
		"cmd/internal/troubles", "registry/embedded", "shim", "shim/data", "shim/exit", "shim/fault", "shim/files", "shim/hadoop", "shim/journal", "shim/launcher", "shim/machine",
		"shim/openapp", "shim/plan", "shim/policy", "shim/prepare", "shim/progress", "shim/signals", "shim/status", "shim/tail", "shim/paireport", "shim/wait", "shim/workdir",
	}},
	{path: "cmd/internal/troubles", may: []string{"appdef/shellwords", "registry", "shim/exit", "shim/wording"}, pure: true},
	{path: "cmd/internal/console", may: []string{"shim/exit", "shim/wording"}},
	{path: "cmd/internal/apps", may: []string{"appdef", "registry", "registry/consul", "shim/exit", "shim/history", "shim/launcher", "shim/machine", "shim/plan", "shim/status", "shim/wording"}},
	{path: "cmd/internal/ask", may: []string{"cmd/internal/apps", "cmd/internal/console", "appdef", "registry", "registry/consul", "shim/exit", "shim/plan", "shim/status", "shim/wait", "shim/wording"}},
	{path: "cmd/internal/gc", may: []string{
		"cmd/internal/apps", "packages/cachedir", "packages/image", "shim/exit", "shim/status", "shim/store/cache",
		"shim/workdir",
	}},
	{path: "cmd/internal/ui", may: []string{
		"shim/gate", "appdef", "cmd/internal/apps", "cmd/internal/ask", "cmd/internal/console", "cmd/internal/logs", "cmd/internal/view",
		"cmd/internal/remote", "cmd/internal/seeds", "cmd/internal/ssh", "registry", "shim/exit", "shim/journal", "shim/journal/timeline", "shim/metrics", "shim/publisher",
		"shim/samples", "shim/status",
	}},
	{path: "cmd/internal/seeds", may: []string{
		"appdef", "appdef/pai", "cmd/internal/apps", "cmd/internal/view", "registry", "registry/consul", "shim/mask",
		"shim/plan", "shim/publisher", "shim/status",
	}},
	{path: "cmd/internal/ssh", may: []string{
		"appdef/shellwords", "cmd/internal/apps", "cmd/internal/console", "registry", "shim/exit", "shim/login", "shim/plan", "shim/wording",
	}},
	{path: "cmd/internal/logs", may: []string{
		"cmd/internal/apps", "cmd/internal/console", "registry", "registry/consul", "shim/exit", "shim/files",
		"shim/journal", "shim/journal/timeline", "shim/status", "shim/tail", "shim/wording",
	}},
	{path: "cmd/internal/remote", may: []string{
		"appdef", "cmd/internal/apps", "registry", "registry/consul", "shim/exit", "shim/mask", "shim/status", "shim/wait",
	}},
	{path: "cmd/internal/flags", may: []string{"shim/ports", "cmd/internal/apps", "cmd/internal/remote", "registry", "registry/consul", "shim/exit", "shim/hadoop", "shim/history", "shim/openapp", "shim/policy", "shim/status"}},
	{path: "cmd/internal/top", may: []string{
		"cmd/internal/apps", "cmd/internal/console", "cmd/internal/view", "shim/samples", "shim/status",
	}},
	{path: "cmd/internal/view", may: []string{"shim/gate", "cmd/internal/apps", "cmd/internal/console", "cmd/internal/troubles", "appdef", "registry", "registry/consul", "shim/exit", "shim/machine", "shim/member", "shim/plan", "shim/status", "shim/wording"}},
	{path: "cmd/internal/detach", may: []string{
		"cmd/internal/apps", "cmd/internal/console", "cmd/internal/flags", "appdef", "registry", "shim/exit", "shim/fault", "shim/machine", "shim/mask", "shim/status",
		"shim/tail", "shim/workdir",
	}},
	{path: "cmd/internal/slider", may: []string{
		"cmd/internal/apps", "cmd/internal/ask", "cmd/internal/console", "cmd/internal/detach", "cmd/internal/flags", "cmd/internal/run",
		"cmd/internal/seeds", "cmd/internal/view", "appdef", "packages", "packages/sign", "packages/slidershell", "registry", "registry/consul", "shim/checkpoint", "shim/exit", "shim/fault", "shim/files",
		"shim/hadoop", "shim/hostlock", "shim/launcher/job", "shim/launcher/yarn", "shim/launcher/yarn/client", "shim/mask", "shim/openapp", "shim/plan", "shim/policy", "shim/publisher", "shim/sandbox/proc", "shim/status", "shim/store", "shim/store/schemes", "shim/submit",
		"shim/wait", "shim/wording", "shim/workdir",
	}},
	{path: "cmd/muster", may: []string{"*"}},
	{path: "cmd/muster-gpu", may: []string{"shim/gpu"}},

	{path: "scripts", may: []string{"shim/render"}}, // its words for a shell
	{path: "tests", may: []string{"*", "registry/registrytest"}},
}

// forbiddenToPure are standard packages that a pure room must not import, with what they are.
var forbiddenToPure = map[string]string{
	"os": "the machine", "os/exec": "processes", "os/signal": "signals", "os/user": "the machine", "syscall": "the machine",
	"net": "the network", "net/http": "the network", "net/rpc": "the network", "golang.org/x/sys/unix": "the machine",
}

// clock are the functions of package time that read it or wait for it.
var clock = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}

// goPackage is what we read of `go list -json`.
type goPackage struct {
	ImportPath, Dir  string
	Imports, GoFiles []string
}

func TestImports(t *testing.T) {
	pkgs := listPackages(t)
	if len(pkgs) < 5 {
		t.Fatalf("go list names only %d packages", len(pkgs))
	}
	for _, v := range violations(pkgs) {
		t.Error(v)
	}
	for _, path := range emptyRooms(pkgs) {
		t.Errorf("%s has no package: remove its line from the table of tests/imports_test.go", path)
	}
}

func TestPureRoomsReadNoClock(t *testing.T) {
	for _, p := range listPackages(t) {
		if r, ok := roomOf(rel(p.ImportPath)); !ok || !r.pure {
			continue
		}
		for _, name := range p.GoFiles {
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			for _, use := range clockUses(file) {
				t.Errorf("%s:%d: %s is pure and must not use time.%s: take the time as a value",
					rel(p.ImportPath)+"/"+name, fset.Position(use.Pos()).Line, rel(p.ImportPath), use.Sel.Name)
			}
		}
	}
}

func TestViolations(t *testing.T) {
	for _, tt := range []struct{ name, pkg, imports, want string }{
		{"downwards", "shim/plan", "appdef", ""},
		{"upwards", "appdef", "shim/machine", "appdef must not import shim/machine"},
		{"a room's own folders", "registry/embedded/embeddedtest", "registry/embedded", ""},
		{"below a room the room's rule holds", "registry/embedded/embeddedtest", "shim/plan", "registry/embedded/embeddedtest must not import shim/plan"},
		{"a folder below is not the room", "appdef", "appdef/slider", "appdef must not import appdef/slider"},
		{"the command sees all", "cmd/muster", "shim/ports", ""},
		{"but no tests", "cmd/muster", "tests/need", "cmd/muster must not import tests/need"},
		{"nor the conformance suite", "cmd/muster", "registry/registrytest", "cmd/muster must not import registry/registrytest"},
		{"an unknown room", "shim/util", "", "shim/util is an unknown room: give it a line in the table of tests/imports_test.go"},
		{"an unknown house", "util", "", "util is an unknown room: give it a line in the table of tests/imports_test.go"},
		{"pure room on the machine", "shim/plan", "os", "shim/plan is pure and must not import os (the machine)"},
		{"pure room may know addresses", "registry", "net/netip", ""},
		{"others may", "shim/ports", "os", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			imp := tt.imports
			if _, ours := roomOf(imp); ours {
				imp = module + "/" + imp
			}
			got := strings.Join(violations([]goPackage{{ImportPath: module + "/" + tt.pkg, Imports: []string{imp}}}), "\n")
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestClockUses(t *testing.T) {
	const source = `package p
import clk "time"
type time struct{ Now int }
var a = clk.Second
var b = clk.Now()
var c time
var d = c.Now
`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	uses := clockUses(file)
	if len(uses) != 1 || uses[0].Sel.Name != "Now" {
		t.Errorf("got %d uses, want the one of clk.Now", len(uses))
	}
}

// emptyRooms are the rooms of the table that no package belongs to.
func emptyRooms(pkgs []goPackage) []string {
	full := map[string]bool{}
	for _, p := range pkgs {
		r, _ := roomOf(rel(p.ImportPath))
		full[r.path] = true
	}
	var out []string
	for _, r := range rooms {
		if !full[r.path] {
			out = append(out, r.path)
		}
	}
	return out
}

// violations are all broken rules, sorted.
func violations(pkgs []goPackage) []string {
	var out []string
	for _, p := range pkgs {
		from := rel(p.ImportPath)
		r, ok := roomOf(from)
		if !ok {
			out = append(out, from+" is an unknown room: give it a line in the table of tests/imports_test.go")
			continue
		}
		for _, imp := range p.Imports {
			if what, bad := forbiddenToPure[imp]; bad && r.pure {
				out = append(out, fmt.Sprintf("%s is pure and must not import %s (%s)", from, imp, what))
			}
			if strings.HasPrefix(imp, module+"/") && !r.mayImport(rel(imp)) {
				out = append(out, fmt.Sprintf("%s must not import %s", from, rel(imp)))
			}
		}
	}
	slices.Sort(out)
	return out
}

func (r room) mayImport(path string) bool {
	to, ok := roomOf(path)
	if !ok {
		return true // named once, as an unknown room
	}
	if to.path == r.path || slices.Contains(r.may, to.path) || slices.Contains(r.may, path) {
		return true
	}
	product := to.path != "tests" && to.path != "registry/registrytest"
	return slices.Contains(r.may, "*") && product
}

// roomOf is the room that the package belongs to.
func roomOf(path string) (room, bool) {
	for _, r := range rooms {
		if path == r.path || strings.HasPrefix(path, r.path+"/") && !r.hasRoomsBelow() {
			return r, true
		}
	}
	return room{}, false
}

func (r room) hasRoomsBelow() bool {
	return slices.ContainsFunc(rooms, func(other room) bool { return strings.HasPrefix(other.path, r.path+"/") })
}

// clockUses are the selectors that reach the clock through the import of package time.
func clockUses(file *ast.File) []*ast.SelectorExpr {
	name := ""
	for _, imp := range file.Imports {
		if imp.Path.Value == `"time"` {
			name = "time"
			if imp.Name != nil {
				name = imp.Name.Name
			}
		}
	}
	var uses []*ast.SelectorExpr
	ast.Inspect(file, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := sel.X.(*ast.Ident); ok && name != "" && pkg.Name == name && slices.Contains(clock, sel.Sel.Name) {
			uses = append(uses, sel)
		}
		return true
	})
	return uses
}

func rel(importPath string) string { return strings.TrimPrefix(importPath, module+"/") }

// listPackages asks the go command, whose answers the test cache does not watch: run with -count=1.
func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Dir,Imports,GoFiles", module+"/...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, &stderr)
	}
	var pkgs []goPackage
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return pkgs
		} else if err != nil {
			t.Fatal(err)
		}
		pkgs = append(pkgs, p)
	}
}
