package bench

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// The rivals' programs are named by these variables, as scripts/bench-start sets them.
const (
	runcVariable      = "BENCH_RUNC"
	crunVariable      = "BENCH_CRUN"
	librariesVariable = "BENCH_LIBRARIES" // where crun finds its own
)

// compile makes a static program.
func compile(b *testing.B, path, source string) {
	b.Helper()
	file := filepath.Join(b.TempDir(), "main.c")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		b.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-static", "-O2", "-s", "-o", path, file).CombinedOutput(); err != nil {
		b.Fatalf("compile %s: %v\n%s", path, err, out)
	}
}

// rivals are the runtimes that the environment names, with a bundle that does what our containers do: the same
// root, namespaces, mounts and limits, the host's network, no filter.
func (k *bed) rivals(b *testing.B) []contender {
	b.Helper()
	var all []contender
	for _, rival := range []struct{ name, variable string }{{"runc", runcVariable}, {"crun", crunVariable}} {
		if program := os.Getenv(rival.variable); program != "" {
			all = append(all, k.rival(b, rival.name, program))
		}
	}
	return all
}

func (k *bed) rival(b *testing.B, name, program string) contender {
	b.Helper()
	dir := filepath.Join(k.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	bundle, err := json.Marshal(bundleOf(k.image.Layers[0], "/muster-"+k.app+"-"+name))
	if err != nil {
		b.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), bundle, 0o644); err != nil {
		b.Fatal(err)
	}
	r := startRunner(b)
	return contender{name, func() (cost, error) {
		return r.run(program, "--root", filepath.Join(dir, "state"), "run", "--bundle", dir, k.app+"-"+name)
	}}
}

// object is any JSON object.
type object map[string]any

// bundleOf is a config.json of the OCI runtime specification.
func bundleOf(root, cgroup string) object {
	caps := []string{
		"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FSETID", "CAP_FOWNER", "CAP_MKNOD", "CAP_NET_RAW", "CAP_SETGID", "CAP_SETUID",
		"CAP_SETFCAP", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE", "CAP_SYS_CHROOT", "CAP_KILL", "CAP_AUDIT_WRITE",
	}
	mount := func(to, kind, from string, options ...string) object {
		return object{"destination": to, "type": kind, "source": from, "options": options}
	}
	var spaces []object
	for _, kind := range []string{"pid", "ipc", "uts", "mount", "cgroup"} {
		spaces = append(spaces, object{"type": kind})
	}
	return object{
		"ociVersion": "1.0.2",
		"process": object{
			"user": object{"uid": 0, "gid": 0}, "args": []string{"/true"}, "env": []string{"PATH=/usr/bin:/bin"}, "cwd": "/",
			"capabilities": object{"bounding": caps, "effective": caps, "permitted": caps}, "noNewPrivileges": true,
		},
		"root": object{"path": root, "readonly": true}, "hostname": "true-0",
		"mounts": []object{
			mount("/proc", "proc", "proc"),
			mount("/dev", "tmpfs", "tmpfs", "nosuid", "strictatime", "mode=755", "size=65536k"),
			mount("/dev/pts", "devpts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620", "gid=5"),
			mount("/dev/shm", "tmpfs", "shm", "nosuid", "noexec", "nodev", "mode=1777", "size=65536k"),
			mount("/dev/mqueue", "mqueue", "mqueue", "nosuid", "noexec", "nodev"),
			mount("/sys", "sysfs", "sysfs", "nosuid", "noexec", "nodev", "ro"),
			mount("/sys/fs/cgroup", "cgroup", "cgroup", "nosuid", "noexec", "nodev", "relatime", "ro"),
		},
		"linux": object{
			"cgroupsPath": cgroup, "namespaces": spaces,
			"resources": object{
				"devices": []object{{"allow": false, "access": "rwm"}},
				"memory":  object{"limit": memoryLimit, "swap": memoryLimit}, "pids": object{"limit": pidsLimit},
			},
			"maskedPaths": []string{
				"/proc/acpi", "/proc/asound", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
				"/proc/timer_stats", "/proc/sched_debug", "/sys/firmware", "/proc/scsi",
			},
			"readonlyPaths": []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"},
		},
	}
}

// runnerVerb makes this program a runner: it lives in a mount namespace without the second, empty hierarchy of a
// hybrid host, which crun refuses to work beside, and runs there what it is told.
const runnerVerb = "as-runner"

type runnerClient struct {
	in  *json.Encoder
	out *bufio.Reader
}

func startRunner(b *testing.B) *runnerClient {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command("unshare", "-m", "sh", "-c",
		`if [ -d /sys/fs/cgroup/unified ]; then umount -l /sys/fs/cgroup/unified; fi; exec "$0" "$1"`, self, runnerVerb)
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+os.Getenv(librariesVariable))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		in.Close() // its end
		if err := cmd.Wait(); err != nil {
			b.Errorf("runner: %v", err)
		}
	})
	return &runnerClient{json.NewEncoder(in), bufio.NewReader(out)}
}

// answer is what a runner says of one command.
type answer struct {
	Cost  cost
	Error string
}

func (r *runnerClient) run(argv ...string) (cost, error) {
	if err := r.in.Encode(argv); err != nil {
		return cost{}, err
	}
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		return cost{}, fmt.Errorf("runner is gone: %w", err)
	}
	var a answer
	if err := json.Unmarshal(line, &a); err != nil {
		return cost{}, err
	}
	if a.Error != "" {
		return cost{}, fmt.Errorf("%q: %s", argv, a.Error)
	}
	return a.Cost, nil
}

// runner runs one command after the other; it measures where the command is started, as compare does with ours.
func runner(in io.Reader, out io.Writer) error {
	commands, answers := json.NewDecoder(in), json.NewEncoder(out)
	for {
		var argv []string
		if err := commands.Decode(&argv); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Stderr = os.Stderr
		c, err := spent(cmd.Run)
		a := answer{Cost: c}
		if err != nil {
			a.Error = err.Error()
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}
