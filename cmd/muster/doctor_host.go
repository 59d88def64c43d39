package main

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox"
)

// What muster can do without, and says so.

// checkEngine says how processes are confined, and which limits nobody holds.
func checkEngine() check {
	choice := engineChoice(sandbox.Process{})
	if len(choice.Cannot) == 0 {
		return good("engine", "%s: every limit is enforced", choice.Name)
	}
	return bad("engine", "the launcher's own limits still hold; a definition's limits are listed as unenforced in plan and status",
		"%s, which does not enforce %s", choice.Name, strings.Join(slices.Sorted(maps.Keys(choice.Cannot)), ", "))
}

// checkCgroup looks at the cgroup of this process. root is / or a copy of it.
func checkCgroup(root string) check {
	const name = "cgroup"
	text, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return bad(name, "mount /proc", "%v", err)
	}
	own, unified := "", false
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(strings.TrimSpace(line), "0::"); ok {
			own, unified = path, true
		}
	}
	mount := filepath.Join(root, "sys/fs/cgroup")
	_, err = os.Stat(filepath.Join(mount, "cgroup.controllers"))
	if err != nil || !unified {
		return bad(name, "boot with systemd.unified_cgroup_hierarchy=1 for cgroup v2", "no cgroup v2 at %s", mount)
	}
	dir := filepath.Join(mount, own)
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return bad(name, "let the launcher delegate the cgroup (systemd: Delegate=yes)", "v2, %s cannot be written: %v", dir, err)
	}
	return good(name, "v2, %s can be written", dir)
}

// checkUserNamespaces makes one.
func checkUserNamespaces(ctx context.Context) check {
	const name = "user namespaces"
	self, err := os.Executable()
	if err != nil {
		return bad(name, "mount /proc", "%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, guardPatience)
	defer cancel()
	cmd := exec.CommandContext(ctx, self, "version")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER}
	if err := cmd.Run(); err != nil {
		return bad(name, "sysctl user.max_user_namespaces, kernel.unprivileged_userns_clone and kernel.apparmor_restrict_unprivileged_userns decide",
			"cannot be made: %v", err)
	}
	return good(name, "can be made")
}

// checkWorkFolder asks whether the default work folder could be made.
func checkWorkFolder() check {
	const name = "work folder"
	dir, err := defaultWorkDir("doctor")
	if err != nil {
		return bad(name, "give --work-dir", "%v", err)
	}
	dir = filepath.Dir(dir)
	there := dir
	for there != "/" {
		if _, err := os.Stat(there); err == nil {
			break
		}
		there = filepath.Dir(there)
	}
	if err := unix.Access(there, unix.W_OK|unix.X_OK); err != nil {
		return bad(name, "give --work-dir a folder that can be written", "%s: %s cannot be written: %v", dir, there, err)
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(there, &disk); err != nil {
		return good(name, "%s", dir)
	}
	return good(name, "%s, %d GiB free", dir, disk.Bavail*uint64(disk.Bsize)>>30)
}

// enoughFiles is what an agent, its guard and a process with some hundred peers need.
const enoughFiles = 1024

func checkOpenFiles() check {
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

func checkShell() check {
	const name = "shell"
	for _, shell := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(shell); err == nil {
			return good(name, "%s", path)
		}
	}
	return bad(name, "install bash, or use an image that has a shell", "neither bash nor sh: muster.command and metainfo's commands cannot run")
}

func checkPython(ctx context.Context) check {
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
	return good(name, "%s (%s)", path, strings.TrimSpace(string(out)))
}

// checkGPU looks for device nodes. dev is /dev or a copy of it.
func checkGPU(dev string) check {
	const name = "gpu"
	nodes, err := filepath.Glob(filepath.Join(dev, "nvidia[0-9]*"))
	switch {
	case err != nil || len(nodes) == 0:
		return good(name, "no device nodes")
	case gpuHelper() == nil:
		return bad(name, "put muster-gpu beside muster for health, memory and choice by model", "%s by device nodes, no muster-gpu", counted(len(nodes), "GPU"))
	}
	return good(name, "%s", counted(len(nodes), "GPU"))
}
