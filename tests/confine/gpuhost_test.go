package confine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// hostVerb makes this test binary the maker of a host with GPUs: device nodes that no driver answers at, in a mount
// namespace of its own. Then it becomes the program of its further arguments.
const hostVerb = "as-host-with-gpus"

// hostMain makes the nodes of the GPUs from first on; an error is all that it returns.
func hostMain(args []string) int {
	err := gpuHost(args)
	fmt.Fprintln(os.Stderr, "host with GPUs:", err)
	return 1
}

// nvidia is the major number of GPUs' nodes. Nothing answers there: to open one that may be opened fails with ENXIO,
// one that may not with EPERM.
const nvidia = 195

func gpuHost(args []string) error {
	first, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	// The thread that leaves the host's mounts is the one that becomes the program.
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	// What is mounted over /dev shows what is below it, and the nodes.
	if err := mountDev(first); err != nil {
		return err
	}
	if err := mountCDI(os.Getenv(cdiVariable)); err != nil {
		return err
	}
	argv := args[1:]
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return err
	}
	return syscall.Exec(path, argv, os.Environ())
}

// cdiVariable names the CDI spec of the host, if it has one.
const cdiVariable = "CONFINE_CDI"

// mountCDI puts a spec where one is looked for.
func mountCDI(spec string) error {
	if spec == "" {
		return nil
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	text, err := os.ReadFile(spec)
	if err != nil {
		return err
	}
	if err := os.Mkdir("/run/cdi", 0o755); err != nil {
		return err
	}
	return os.WriteFile("/run/cdi/nvidia.json", text, 0o644)
}

func mountDev(first int) error {
	const held = "/mnt"
	if err := unix.Mount("tmpfs", held, "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return fmt.Errorf("mount: %w", err)
	}
	entries, err := os.ReadDir("/dev")
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := same(filepath.Join("/dev", e.Name()), filepath.Join(held, e.Name())); err != nil {
			return err
		}
	}
	nodes := map[string]int{"nvidiactl": 255, "nvidia-uvm": 254}
	for i := range 8 {
		nodes["nvidia"+strconv.Itoa(first+i)] = first + i
	}
	for name, minor := range nodes {
		if err := unix.Mknod(filepath.Join(held, name), unix.S_IFCHR|0o666, int(unix.Mkdev(nvidia, uint32(minor)))); err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
		if err := os.Chmod(filepath.Join(held, name), 0o666); err != nil {
			return err
		}
	}
	return unix.Mount(held, "/dev", "", unix.MS_MOVE, "")
}

// same makes what stands at from at to.
func same(from, to string) error {
	var st unix.Stat_t
	if err := unix.Lstat(from, &st); err != nil {
		return err
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFLNK:
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	case unix.S_IFDIR:
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
	default:
		if err := os.WriteFile(to, nil, 0o600); err != nil {
			return err
		}
	}
	return unix.Mount(from, to, "", unix.MS_BIND|unix.MS_REC, "")
}

var gpuHosts atomic.Int64

// firstGPU is the number of the first of 8 GPUs that no other test on this machine has.
func firstGPU() int { return 500_000 + os.Getpid()%5000*100 + int(gpuHosts.Add(1)-1)*8 }
