package sandbox

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/subids"
	"github.com/muster-agent/muster/tests/need"
)

// What a process may try by system calls alone, in each engine, as root and as another user. Two engines have no mount
// namespace: an attack that works must change nothing of the host that these tests run on. So what is asked for is absurd
// (a file system that no kernel has, a folder where nothing is mounted), and a refusal is told from any other error.

func init() {
	roles["as-intruder"] = asIntruder
	roles["as-eavesdropper"] = asEavesdropper
}

// eachEngineAndUser are the engines of this host, with the users whom an agent like ours can start a process as.
func eachEngineAndUser(t *testing.T, test func(t *testing.T, start func(change func(*Options)) *Guard)) {
	t.Helper()
	tree := tree(t)
	app := publicCopy(t)
	engines := []Engine{Process{}}
	if tree.Cannot()["memory_mb"] == "" {
		engines = append(engines, Cgroup{Tree: tree})
	}
	if ok, _ := probed(); ok {
		engines = append(engines, Container{Tree: tree})
	}
	type who struct {
		user *guard.User
		ids  *subids.Map
	}
	users := map[string]who{"agent's user": {}}
	if os.Geteuid() == 0 {
		block := subids.Block{UID: firstID, GID: firstID}
		named := nobody(t)
		users["another user"] = who{user: named}
		users["root with ids of its own"] = who{&guard.User{}, subids.New(block, nil, nil)}
		users["another user with ids of its own"] = who{named, subids.New(block, []int{int(named.UID)}, []int{int(named.GID)})}
	}
	for _, e := range engines {
		for name, who := range users {
			t.Run(e.Name()+" as "+name, func(t *testing.T) {
				test(t, func(change func(*Options)) *Guard {
					o := Options{
						LogDir: filepath.Join(t.TempDir(), "log"), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)),
						Confine: Confinement{
							App: testApp(t), Instance: "worker-0", Hostname: "worker-0", Dir: filepath.Join(t.TempDir(), "container"),
							User: who.user, IDs: who.ids, Mounts: []container.Mount{{From: filepath.Dir(app), To: filepath.Dir(app), ReadOnly: true}},
						},
					}
					if change != nil {
						change(&o)
					}
					if who.ids != nil {
						root, _ := who.ids.UID(0) // whose the guard is
						reachable(t, o.Confine.Dir, o.LogDir)
						if err := errors.Join(os.MkdirAll(o.LogDir, 0o755), os.Chown(o.LogDir, root, root)); err != nil {
							t.Fatal(err)
						}
					}
					return startEngine(t, e, o)
				})
			})
		}
	}
}

func startEngine(t *testing.T, e Engine, o Options) *Guard {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	g, err := e.StartGuard(ctx, o)
	if errors.Is(err, guard.ErrNotBuilt) {
		need.Skip(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return g
}

// appName is where publicCopy puts this program, for all tests of a process.
var appName = fmt.Sprintf("/var/tmp/muster-sandboxtest-%d/app", os.Getpid())

// publicCopy is this program where any user may execute it, at the same path for all.
func publicCopy(t *testing.T) string {
	t.Helper()
	dir := filepath.Dir(appName)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	from, err := os.Open(self(t))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(appName, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close(), os.Chmod(dir, 0o755), os.Chmod(appName, 0o755)); err != nil {
		t.Fatal(err)
	}
	return appName
}

func TestAttackBySystemCalls(t *testing.T) {
	eachEngineAndUser(t, func(t *testing.T, start func(func(*Options)) *Guard) {
		g := start(nil)
		intruder := "TMPDIR=/tmp " + appName + " as-intruder && echo tried"
		if got := inside(t, g, intruder, func(s *Spec) { s.Dir = "/tmp" }); got != "tried\n" {
			t.Errorf("what worked, or failed otherwise than by a refusal:\n%s", got)
		}
		// An exec is held as the process is.
		s := run(t, g, ExecSpec{Dir: "/tmp"}, intruder)
		out, err := io.ReadAll(s.Stdout)
		if err != nil {
			t.Fatal(err)
		}
		if string(out) != "tried\n" {
			said, _ := io.ReadAll(s.Stderr)
			t.Errorf("what worked in an exec:\n%s%s", out, said)
		}
	})
}

// asIntruder prints each call that is answered otherwise than by a refusal. Each is tried by a thread of its own, which
// ends then: what a thread is in does not go over to the next.
func asIntruder(without []string) error {
	dir, err := os.MkdirTemp("", "intruder")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	raw := func(number uintptr, args ...uintptr) error {
		var six [6]uintptr
		copy(six[:], args)
		_, _, errno := syscall.Syscall6(number, six[0], six[1], six[2], six[3], six[4], six[5])
		if errno == 0 {
			return nil
		}
		return errno
	}
	child := func(flags uintptr) error {
		cmd := exec.Command("/bin/true")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
		return cmd.Run()
	}
	socket := func(family, kind, protocol int) error {
		_, err := unix.Socket(family, kind, protocol)
		return err
	}
	for name, try := range map[string]func() error{
		"keyctl: the user's keyring": func() error { _, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true); return err },
		"keyctl: link the user's session keyring": func() error {
			_, err := unix.KeyctlInt(unix.KEYCTL_LINK, unix.KEY_SPEC_USER_SESSION_KEYRING, unix.KEY_SPEC_PROCESS_KEYRING, 0, 0)
			return err
		},
		"add_key": func() error {
			_, err := unix.AddKey("user", "muster-intruder", []byte("x"), unix.KEY_SPEC_PROCESS_KEYRING)
			return err
		},
		"request_key":         func() error { _, err := unix.RequestKey("user", "muster-intruder", "", 0); return err },
		"clone: user":         func() error { return child(unix.CLONE_NEWUSER) },
		"clone: mount, user":  func() error { return child(unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP) },
		"clone: mount":        func() error { return child(unix.CLONE_NEWNS) },
		"clone3":              func() error { return raw(unix.SYS_CLONE3, 0, 0) },
		"unshare: mount":      func() error { return unix.Unshare(unix.CLONE_NEWNS) },
		"unshare: ipc":        func() error { return unix.Unshare(unix.CLONE_NEWIPC) },
		"unshare(1) -Ur":      func() error { return exec.Command("unshare", "-Ur", "true").Run() },
		"unshare(1) -UrmC":    func() error { return exec.Command("unshare", "-UrmC", "true").Run() },
		"mount":               func() error { return unix.Mount("none", dir, "muster-none", 0, "") },
		"fsopen":              func() error { _, err := unix.Fsopen("muster-none", 0); return err },
		"open_tree":           func() error { _, err := unix.OpenTree(unix.AT_FDCWD, "/", unix.OPEN_TREE_CLONE); return err },
		"umount2":             func() error { return unix.Unmount(dir, unix.UMOUNT_NOFOLLOW) },
		"pivot_root":          func() error { return unix.PivotRoot(dir, dir) },
		"setns":               func() error { return enter("/proc/self/ns/uts", unix.CLONE_NEWUTS) },
		"sethostname":         func() error { return unix.Sethostname([]byte(host)) },
		"bpf":                 makeMap,
		"perf_event_open":     countOwn,
		"userfaultfd":         func() error { return raw(unix.SYS_USERFAULTFD, 1) },
		"io_uring_setup":      func() error { var p [120]byte; return raw(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&p))) },
		"open_by_handle_at":   func() error { return openByHandle(file) },
		"delete_module":       func() error { return unix.DeleteModule("muster_no_such_module", unix.O_NONBLOCK) },
		"kexec_file_load":     func() error { return raw(unix.SYS_KEXEC_FILE_LOAD, ^uintptr(0), ^uintptr(0), 0, 0, 0) },
		"swapoff":             func() error { return swapoff(file) },
		"syslog":              func() error { _, err := unix.Klogctl(unix.SYSLOG_ACTION_SIZE_BUFFER, nil); return err },
		"AF_ALG":              func() error { return socket(unix.AF_ALG, unix.SOCK_SEQPACKET, 0) },
		"AF_VSOCK":            func() error { return socket(unix.AF_VSOCK, unix.SOCK_STREAM, 0) },
		"AF_PACKET":           func() error { return socket(unix.AF_PACKET, unix.SOCK_RAW, 0) },
		"AF_INET: raw":        func() error { return socket(unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_UDP) },
		"mknod":               func() error { return unix.Mknod(filepath.Join(dir, "null"), unix.S_IFCHR|0o666, 1<<8|3) },
		"file capability":     func() error { return unix.Setxattr(file, "security.capability", netRaw(), 0) },
		"oom_score_adj":       func() error { return os.WriteFile("/proc/self/oom_score_adj", []byte("-1000"), 0) },
		"raise a limit":       func() error { return unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 1 << 20, Max: 1 << 21}) },
		"set-user-id program": func() error { return setUserID() },
	} {
		if slices.Contains(without, name) {
			continue
		}
		err := onItsOwnThread(try)
		if err != nil && (errors.Is(err, fs.ErrPermission) || errors.Is(err, unix.ENOSYS)) {
			continue
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 { // unshare(1) says why
			continue
		}
		fmt.Printf("%s: %v\n", name, err)
	}
	return nil
}

func onItsOwnThread(try func() error) error {
	answer := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		answer <- try()
	}()
	return <-answer
}

func enter(path string, kind int) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return unix.Setns(int(f.Fd()), kind)
}

func makeMap() error {
	attr := [8]uint32{2, 4, 4, 1} // an array of one
	_, _, errno := unix.Syscall(unix.SYS_BPF, unix.BPF_MAP_CREATE, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	if errno == 0 {
		return nil
	}
	return errno
}

// countOwn counts what is permitted to anybody at the common setting of perf_event_paranoid: its own time.
func countOwn() error {
	attr := unix.PerfEventAttr{Type: unix.PERF_TYPE_SOFTWARE, Config: unix.PERF_COUNT_SW_CPU_CLOCK, Bits: unix.PerfBitExcludeKernel}
	attr.Size = uint32(unsafe.Sizeof(attr))
	_, err := unix.PerfEventOpen(&attr, 0, -1, -1, 0)
	return err
}

func openByHandle(path string) error {
	handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, path, 0)
	if err != nil {
		return err
	}
	dir, err := unix.Open(filepath.Dir(path), unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	_, err = unix.OpenByHandleAt(dir, handle, unix.O_RDONLY)
	return err
}

func swapoff(path string) error {
	name, err := unix.BytePtrFromString(path)
	if err != nil {
		return err
	}
	_, _, errno := unix.Syscall(unix.SYS_SWAPOFF, uintptr(unsafe.Pointer(name)), 0, 0)
	return errno
}

// netRaw is the attribute of a file whose program has CAP_NET_RAW (struct vfs_cap_data, version 2).
func netRaw() []byte {
	var b []byte
	for _, word := range []uint32{0x02000001, 1 << unix.CAP_NET_RAW, 0, 0, 0} {
		b = binary.LittleEndian.AppendUint32(b, word)
	}
	return b
}

// setUserID looks whether a set-user-id program could give anything.
func setUserID() error {
	on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	if err == nil && on == 1 {
		return fs.ErrPermission
	}
	return err
}

// A token on the loopback is read by who may open a packet socket there.
func TestAttackReadsNoTokenOnTheLoopback(t *testing.T) {
	eachEngineAndUser(t, func(t *testing.T, start func(func(*Options)) *Guard) {
		g := start(nil)
		token := rand.Text()
		server, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		s := run(t, g, ExecSpec{Dir: "/tmp"}, "exec "+appName+" as-eavesdropper "+token[:6])
		said := make([]byte, 64)
		n, err := s.Stdout.Read(said)
		if err != nil {
			t.Fatal(err)
		}
		if got := string(said[:n]); got != "refused\n" {
			client, err := net.Dial("udp", server.LocalAddr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			fmt.Fprint(client, token)
			rest, err := io.ReadAll(s.Stdout)
			t.Errorf("the eavesdropper says %q, then %q (%v); the token was %s", got, rest, err, token)
		}
	})
}

// asEavesdropper prints what passes the loopback and has args[0] in it, once.
func asEavesdropper(args []string) error {
	const all = 0x0300 // ETH_P_ALL in the network's order
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, all)
	if errors.Is(err, fs.ErrPermission) {
		fmt.Println("refused")
		return nil
	}
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: 1}); err != nil {
		return err
	}
	fmt.Println("listening")
	for packet := make([]byte, 1<<16); ; {
		n, err := unix.Read(fd, packet)
		if err != nil {
			return err
		}
		if at := bytes.Index(packet[:n], []byte(args[0])); at >= 0 {
			fmt.Println("read", string(packet[at:n]))
			return nil
		}
	}
}

// A cgroup that is mounted in namespaces of one's own shows the files of its limits. The script writes to such a file only
// where it reads the limit of this very test.
func TestAttackLiftsNoLimit(t *testing.T) {
	const limit = 24593 * 4096
	eachEngineAndUser(t, func(t *testing.T, start func(func(*Options)) *Guard) {
		g := start(func(o *Options) { o.Confine.Limits = cgroup.Limits{Memory: limit} })
		held := limitFiles(g)
		got := inside(t, g, fmt.Sprintf(`exec 2>/dev/null
			at=$(mktemp -d) && chmod 755 $at && cat >$at/lift <<-'X'
				cd $1/m && mount -t cgroup -o memory cgroup $1/m || mount -t cgroup2 cgroup2 $1/m || exit
				echo mounted
				find $1/m -name memory.memsw.limit_in_bytes -o -name memory.limit_in_bytes -o -name memory.max | while read -r file; do
					[ "$(cat $file)" = %d ] && echo $((%d * 2)) >$file && echo lifted
				done
			X
			mkdir $at/m
			for with in -UrmC -Urm -mC -m; do unshare $with sh $at/lift $at; done
			rm $at/lift; rmdir $at/m $at; echo end`, limit, limit))
		if got != "end\n" {
			t.Errorf("got %q", got)
		}
		for _, file := range held {
			if now := strings.TrimSpace(readFile(t, file)); now != fmt.Sprint(limit) {
				t.Errorf("%s is %s, want %d", file, now, limit)
			}
		}
	})
}

// limitFiles are those of the host that hold a guard's processes to its memory.
func limitFiles(g *Guard) []string {
	var all []string
	for _, dir := range g.Remains().Cgroups {
		for _, name := range []string{"memory.limit_in_bytes", "memory.max"} {
			file := filepath.Join(dir, name)
			if _, err := os.Stat(file); err == nil && !slices.Contains(all, file) {
				all = append(all, file)
			}
		}
	}
	return all
}
