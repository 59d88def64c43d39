package tests

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"testing"
)

// actors are the rooms that act on behalf of an app. What a definition, an image, a package or a record names they reach
// through shim/files alone. shim/status is none: it writes the state folder, which no app names a path of.
var actors = []string{
	"shim", "shim/journal", "shim/prepare", "shim/process", "shim/data", "shim/data/manager", "shim/data/stores",
	"shim/checkpoint", "shim/checkpoint/format",
	"shim/data/transfer", "shim/data/stream", "shim/script", "shim/secret", "shim/member", "shim/publisher", "shim/side",
	"shim/tail", "shim/openapp", "shim/workdir", "shim/sandbox",
}

// fileCalls are the functions that reach a file by a path, by package.
var fileCalls = map[string][]string{
	"os": {
		"Chmod", "Chown", "Chtimes", "CopyFS", "Create", "CreateTemp", "DirFS", "Lchown", "Link", "Lstat", "Mkdir", "MkdirAll", "MkdirTemp", "Open",
		"OpenFile", "OpenInRoot", "OpenRoot", "ReadDir", "ReadFile", "Readlink", "Remove", "RemoveAll", "Rename", "Stat", "Symlink", "Truncate",
		"WriteFile",
	},
	"syscall": {
		"Access", "Chmod", "Chown", "Lchown", "Link", "Lstat", "Mkdir", "Mkfifo", "Mknod", "Open", "Readlink", "Rename", "Rmdir",
		"Stat", "Symlink", "Truncate", "Unlink",
	},
	"file":     {"New", "Open", "Machine", "Below"}, // the store of this machine
	"filepath": {"EvalSymlinks", "Glob", "Walk", "WalkDir"},
	"unix": {
		"Access", "Chmod", "Chown", "Lchown", "Link", "Lstat", "Mkdir", "Mkfifo", "Mknod", "Open", "Openat", "Openat2", "Readlink", "Rename", "Rmdir",
		"Stat", "Symlink", "Truncate", "Unlink",
	},
}

// ownFiles are the functions, as ROOM.FUNCTION, that reach files of the agent's own or of the host's, which no app names,
// and which files those are.
var ownFiles = map[string]string{
	"shim.agent.forget":                 "the agent's record in the state folder",
	"shim.agent.linkLogs":               "the launcher's log folder",
	"shim.agent.logsOfLauncher":         "the launcher's log folder",
	"shim.agent.safeFolders":            "the folders that the command line names",
	"shim.lateFile.open":                "the agent's log folder",
	"shim.stageRoom.giveSocket":         "the agent's socket in the state folder",
	"shim/data/manager.Manager.ownCopy": "the agent's cache",
	"shim/journal.appendLine":           "the agent's log folder",
	"shim/member.hostFacts":             "/proc",
	"shim/openapp.Choices.Args":         "documents that the command line names",
	"shim/openapp.Location.local":       "the APP that the command line names",
	"shim/openapp.ParseLocation":        "the APP that the command line names",
	"shim/openapp.ReadDocument":         "documents that the command line names",
	"shim/openapp.beginning":            "the APP that the command line names",
	"shim/openapp.isAbsent":             "the APP that the command line names",
	"shim/openapp.readJob":              "the job file that the command line names",
	"shim/prepare.ClearDead":            "the agents' records in the state folder",
	"shim/prepare.SeeGuard":             "/proc",
	"shim/prepare.Shell":                "/bin",
	"shim/prepare.deviceNode":           "/dev",
	"shim/prepare.infiniband":           "/dev",
	"shim/prepare.instanceFiles":        "the agents' records in the state folder",
	"shim/prepare.oomScore":             "/proc",
	"shim/prepare.outlast":              "/proc",
	"shim/prepare.overlayOfHost":        "the names in /",
	"shim/sandbox.Guard.sendStart":      "the process's log folder",
	"shim/sandbox.execGuardIn":          "the guard's program, and /proc",
	"shim/sandbox.caller.shutBelow":     "what of the way to a program is closed, for the error's text",
	"shim/sandbox.Guard.execHint":       "whether the program is there, for the error's text",
	"shim/sandbox.spareGuard":           "/proc",
	"shim/workdir.Made":                 "the names in the work folder",
	"shim/workdir.OfRun":                "folders beside a program that the command line names",
	"shim/workdir.Refuse":               "the names in the work folder",
	"shim/workdir.laidOut":              "the names in the work folder",
	"shim/workdir.lock":                 "the work folder, which is locked by its inode",
	"shim/workdir.usedBefore":           "the names in the work folder",
	"shim/secret.Folder.Remove":         "the agent's folder of secrets in memory",
	"shim/secret.MakeFolder":            "the agent's folder of secrets in memory",
	"shim/secret.Sweep":                 "the agents' folders of secrets in memory",
}

func TestOneDoorToFiles(t *testing.T) {
	var used []string
	for _, p := range listPackages(t) {
		room := rel(p.ImportPath)
		for _, name := range p.GoFiles {
			if !slices.Contains(actors, room) {
				continue
			}
			fset := token.NewFileSet()
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Error(err)
				continue
			}
			for _, call := range callsToFiles(file) {
				if key := room + "." + call.function; ownFiles[key] != "" {
					used = append(used, key)
					continue
				}
				t.Errorf("%s/%s:%d: %s calls %s: reach what an app names through shim/files, or name the function in ownFiles of tests/files_test.go",
					room, name, fset.Position(call.at).Line, call.function, call.name)
			}
		}
	}
	for name := range ownFiles {
		if !slices.Contains(used, name) {
			t.Errorf("ownFiles names %s, which reaches no file: remove it", name)
		}
	}
}

// fileCall is a use of a function that reaches a file.
type fileCall struct {
	function string // in which it stands: a function's name, or TYPE.METHOD
	name     string // os.Open
	at       token.Pos
}

func callsToFiles(file *ast.File) []fileCall {
	var all []fileCall
	for _, d := range file.Decls {
		function := "a variable"
		if f, ok := d.(*ast.FuncDecl); ok {
			function = nameOfFunction(f)
		}
		ast.Inspect(d, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := s.X.(*ast.Ident)
			if ok && slices.Contains(fileCalls[pkg.Name], s.Sel.Name) {
				all = append(all, fileCall{function, pkg.Name + "." + s.Sel.Name, s.Pos()})
			}
			return true
		})
	}
	return all
}

func nameOfFunction(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	on := f.Recv.List[0].Type
	if star, ok := on.(*ast.StarExpr); ok {
		on = star.X
	}
	if name, ok := on.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

func TestCallsToFiles(t *testing.T) {
	const text = `package p
import "os"
var a = os.DirFS("/")
func (t *T) m() { defer func() { os.Remove("x") }() }
func f(r *os.Root) { r.Open("x"); os.Getenv("x") }`
	file, err := parser.ParseFile(token.NewFileSet(), "p.go", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range callsToFiles(file) {
		got = append(got, fmt.Sprintf("%s in %s", c.name, c.function))
	}
	if want := []string{"os.DirFS in a variable", "os.Remove in T.m"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
