package doctor

import (
	"cmp"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/ownfolder"
	"github.com/muster-agent/muster/shim/status"
)

// Checks of things that muster can do without.

// workFolder is where an agent would work, and who says so. That of an app whose name is not known lies in it.
func workFolder(found launcher.Found, o Options) (dir, from string, err error) {
	if dir = cmp.Or(o.WorkDir, found.WorkDir); dir != "" {
		from = "--work-dir"
		if o.WorkDir == "" {
			from = cmp.Or(found.Origins["work_dir"], string(found.Name))
		}
		dir, err = filepath.Abs(dir)
		return dir, " (" + from + ")", err
	}
	app := cmp.Or(o.AppID, found.AppID)
	dir, err = status.DefaultWorkDir(cmp.Or(app, "app"))
	if app == "" {
		dir = filepath.Dir(dir)
	}
	return dir, "", err
}

// checkWorkFolder asks whether an agent could make its work folder.
func checkWorkFolder(found launcher.Found, o Options) Check {
	const name = "work folder"
	dir, from, err := workFolder(found, o)
	if err != nil {
		return bad(name, "give --work-dir", "%v", err)
	}
	there := existing(dir)
	if err := unix.Access(there, unix.W_OK|unix.X_OK); err != nil {
		return bad(name, "give --work-dir a folder that can be written", "%s%s: %s cannot be written: %v", dir, from,
			there, err)
	}
	if err := keeps(dir, there); err != nil {
		return bad(name, "give --work-dir a folder of root's or of your own", "%s%s: %v", dir, from, err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(there, &disk); err != nil {
		return good(name, "%s%s", dir, from)
	}
	return good(name, "%s%s, %d GiB free", dir, from, disk.Bavail*uint64(disk.Bsize)>>30)
}

// keeps refuses a folder that agents refuse, in whose place others could put another; there is the part that exists.
func keeps(dir, there string) error {
	if dir == there {
		return ownfolder.Fixed(dir, os.Geteuid())
	}
	below, err := filepath.Rel(there, dir)
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(below, "/")
	return ownfolder.FixedIn(there, first, os.Geteuid())
}

// existing is a folder, or the one above it that is there.
func existing(dir string) string {
	for dir != "/" {
		if _, err := os.Stat(dir); err == nil {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}

// enoughFiles is enough for an agent, its guard and a process with some hundred peers.
const enoughFiles = 1024

func checkOpenFiles() Check {
	const name = "open files"
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		return bad(name, "ulimit -n", "%v", err)
	}
	if limit.Max < enoughFiles {
		return bad(name, "ulimit -n 65536, or LimitNOFILE= of the launcher's unit", "at most %d", limit.Max)
	}
	return good(name, "%d, at most %d", limit.Cur, limit.Max)
}

func checkShell() Check {
	const name = "shell"
	for _, shell := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(shell); err == nil {
			return good(name, "%s", path)
		}
	}
	return bad(name, "install bash, or use an image that has a shell",
		"neither bash nor sh: muster.command and metainfo's commands cannot run")
}

func checkPython(ctx context.Context) Check {
	const name = "python3"
	path, err := exec.LookPath("python3")
	if err != nil {
		return bad(name, "install python3, which catalog:handwriting and catalog:tensorflow run", "not in PATH")
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return bad(name, "mend or reinstall python3", "%s --version: %v", path, err)
	}
	version := strings.TrimSpace(string(out))
	at := closedAt(path)
	if os.Geteuid() != 0 || at == "" {
		return good(name, "%s (%s)", path, version)
	}
	other := openTo("python3", filepath.SplitList(os.Getenv("PATH")))
	if other == "" {
		return bad(name, "install python3 where all users may run it, or take an image", "%s (%s) is closed to the "+
			"user of a process in a container, at %s, and PATH has no other", path, version, at)
	}
	return good(name, "%s (%s); a process in a container takes %s: %s is closed to its user", path, version, other, at)
}

// openTo is the first program of that name in the folders that others than its owner may run; "": there is none.
func openTo(name string, folders []string) string {
	for _, dir := range folders {
		path, err := exec.LookPath(filepath.Join(dir, name))
		if err == nil && filepath.IsAbs(path) && closedAt(path) == "" {
			return path
		}
	}
	return ""
}

// closedAt is the file, what it is a link to, or the nearest folder above, that others than its owner may not run or
// enter; "": none.
func closedAt(path string) string {
	if at := closedAbove(path); at != "" {
		return at
	}
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path
	}
	return closedAbove(target)
}

func closedAbove(path string) string {
	for at := path; at != "/"; at = filepath.Dir(at) {
		if info, err := os.Stat(at); err == nil && info.Mode()&0o001 == 0 {
			return at
		}
	}
	return ""
}

// checkLauncher names the launcher that started this process.
func checkLauncher(found launcher.Found, host launcher.Host) Check {
	const name = "launcher"
	if host.Passed != "" {
		return bad(name, "have that name resolve to an address that others reach, or give --host",
			"%s: %s; others are told %s (%s)",
			found.Name, host.Passed, cmp.Or(host.Address, "nothing"), host.Origin)
	}
	if found.Name == launcher.Shell {
		return good(name, "none is recognised: a person's shell")
	}
	return good(name, "%s, by %s; the kill window is %g s, as %s", found.Name, found.Origins["launcher"],
		found.Allocation.KillWindow, found.Origins["kill_window"])
}
