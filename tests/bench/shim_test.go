package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/proc"
)

// containerd itself, for its shims.
const containerdVariable = "BENCH_CONTAINERD" // ctr and the shim lie beside it; runc is found by BENCH_RUNC

// idleShims measures n containers of a containerd of our own, whose /run is nobody else's.
func idleShims(b *testing.B, n int) {
	b.Helper()
	d := startContainerd(b)
	defer d.stop()
	for i := range n {
		d.ctr("run", "--detach", "--rootfs", "--cgroup", "/"+d.id(i), d.rootfs, d.id(i), "/sleeper")
	}
	await(b, "all shims", func() bool { return len(d.shims()) == n })
	time.Sleep(settle)
	memoryOf(b, d.shims()).report(b, "shim")
	shims := d.shims()
	for i := range n {
		d.ctr("task", "rm", "--force", d.id(i))
		d.ctr("container", "rm", d.id(i))
	}
	for _, pid := range shims { // their parent has left them to us
		if _, err := unix.Wait4(pid, nil, 0, nil); err != nil {
			b.Errorf("shim %d: %v", pid, err)
		}
	}
}

type containerd struct {
	b       *testing.B
	cmd     *exec.Cmd
	bin     string
	address string
	rootfs  string
}

func startContainerd(b *testing.B) *containerd {
	b.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	program := os.Getenv(containerdVariable)
	d := &containerd{b: b, bin: filepath.Dir(program), address: filepath.Join(dir, "s"), rootfs: filepath.Join(dir, "rootfs")}
	if err := os.Mkdir(d.rootfs, 0o755); err != nil {
		b.Fatal(err)
	}
	compile(b, filepath.Join(d.rootfs, "sleeper"), "#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
	config := filepath.Join(dir, "config.toml")
	if err := os.WriteFile(config, []byte("version = 2\ndisabled_plugins = [\"io.containerd.grpc.v1.cri\"]\n"), 0o644); err != nil {
		b.Fatal(err)
	}
	said, err := os.Create(filepath.Join(dir, "said"))
	if err != nil {
		b.Fatal(err)
	}
	d.cmd = exec.Command("unshare", "-m", "sh", "-c", `mount -t tmpfs tmpfs /run && exec "$@"`, "sh", program,
		"--config", config, "--root", filepath.Join(dir, "root"), "--state", filepath.Join(dir, "state"), "--address", d.address)
	d.cmd.Env = d.environment()
	d.cmd.Stdout, d.cmd.Stderr = said, said
	d.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM}
	if err := d.cmd.Start(); err != nil {
		b.Fatal(err)
	}
	await(b, "containerd's socket", func() bool { return d.control("version").Run() == nil })
	return d
}

func (d *containerd) environment() []string {
	return []string{"PATH=" + d.bin + ":" + filepath.Dir(os.Getenv(runcVariable)) + ":/usr/sbin:/usr/bin:/sbin:/bin"}
}

// control is a command of ctr in containerd's mount namespace.
func (d *containerd) control(args ...string) *exec.Cmd {
	all := append([]string{"-t", strconv.Itoa(d.cmd.Process.Pid), "-m", filepath.Join(d.bin, "ctr"), "--address", d.address}, args...)
	cmd := exec.Command("nsenter", all...)
	cmd.Env = d.environment()
	return cmd
}

func (d *containerd) ctr(args ...string) {
	d.b.Helper()
	if out, err := d.control(args...).CombinedOutput(); err != nil {
		d.b.Fatalf("ctr %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func (d *containerd) id(i int) string { return fmt.Sprintf("bench-%d-shim-%d", os.Getpid(), i) }

func (d *containerd) shims() []int {
	return processes(d.b, func(_ proc.Stat, argv []string) bool {
		return strings.HasSuffix(argv[0], "/containerd-shim-runc-v2") && slices.Contains(argv, d.address)
	})
}

func (d *containerd) stop() {
	_ = d.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	_ = d.cmd.Wait()                          // and what it has to say of it interests nobody
}
