package render_test

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/shim/ownfolder"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// starts are the formats that start a binary of a store, and how the words of a task are had of what was rendered. In
// each `%s` stands in place of the binary that the launcher has fetched, if it fetches.
var starts = []struct {
	name, launcher, format string
	fetched                bool // to ./muster, by the launcher
	words                  func(t *testing.T, text, dir string) []string
}{
	{"nomad hcl", "nomad", "hcl", false, firstOf(hclWords)},
	{"nomad json", "nomad", "json", false, firstOf(apiWords)},
	{"systemd", "systemd", "", false, func(t *testing.T, text, dir string) []string {
		return firstOf(unitWords)(t, strings.ReplaceAll(text, "%i", "worker-0"), dir)
	}},
	{"k8s jobset", "k8s", "jobset", false, podStart},
	{"k8s jobs", "k8s", "jobs", false, podStart},
	{"yarn service", "yarn", "service", false, serviceStart},
	{"yarn service, fetched", "yarn", "service", true, serviceStart},
	{"yarn shell", "yarn", "shell", false, shellStart},
	{"yarn shell, fetched", "yarn", "shell", true, shellStart},
	{"slurm", "slurm", "", false, func(t *testing.T, text, _ string) []string {
		words, err := typed(t, text, []string{"srun", "scontrol", "squeue"})
		if err != nil {
			t.Fatal(err)
		}
		return words[slices.Index(words, "bash"):]
	}},
}

func firstOf(read func(string) ([][]string, error)) func(*testing.T, string, string) []string {
	return func(t *testing.T, text, _ string) []string {
		t.Helper()
		all, err := read(text)
		if err != nil || len(all) == 0 {
			t.Fatalf("%v\n%s", err, text)
		}
		return all[0]
	}
}

// podStart has the volume of a pod in a folder of the test's.
func podStart(t *testing.T, text, dir string) []string {
	t.Helper()
	words := firstOf(podWords)(t, text, dir)
	for i := range words {
		words[i] = strings.ReplaceAll(words[i], "/var/lib/muster", dir)
	}
	return words
}

// inLaunchScript is a command as a container's launch script has it.
func inLaunchScript(command string) []string {
	return []string{"bash", "-c", "exec /bin/bash -c \"" + nodeManager(command) + "\"\n"}
}

func serviceStart(t *testing.T, text, _ string) []string {
	t.Helper()
	commands, err := launchCommands(text)
	if err != nil {
		t.Fatal(err)
	}
	return inLaunchScript(commands[0])
}

func shellStart(t *testing.T, text, _ string) []string {
	t.Helper()
	client, err := typed(t, text, []string{"yarn", "hdfs"}, "DISTRIBUTED_SHELL_JAR=/d.jar")
	if err != nil {
		t.Fatal(err)
	}
	at := slices.Index(client, "-shell_command") + 1
	if at == 0 {
		t.Fatalf("got %q", client)
	}
	return inLaunchScript(client[at])
}

// TestAttackBinarySwapped exchanges the binary in the store between the submission and the start: the task of every
// format refuses it, and nothing of it runs. The binary that was submitted runs, with the words that it was given.
func TestAttackBinarySwapped(t *testing.T) {
	for _, tt := range starts {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			ran, task, state := filepath.Join(dir, "ran"), filepath.Join(dir, "task"), filepath.Join(dir, "state")
			stored := filepath.Join(dir, "it's a store", "muster")
			if tt.launcher == "systemd" {
				stored = filepath.Join(dir, "store", "muster") // no blanks
			}
			for _, folder := range []string{task, state, filepath.Dir(stored)} {
				if err := os.Mkdir(folder, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			good := "#!/bin/sh\nprintf '%s\\n' \"$@\" >" + ran + "\n"
			sum := sha256.Sum256([]byte(good))
			o := options()
			o.AppFlags = []string{"--set", "a b=$(id) it's"}
			o.Binary = stored + "#sha256=" + hex.EncodeToString(sum[:])
			at := stored
			if tt.fetched {
				o.Binary, at = "hdfs://nn/m/muster#sha256="+hex.EncodeToString(sum[:]), filepath.Join(task, "muster")
			}
			words := tt.words(t, rendered(t, tt.launcher, tt.format, small(t), o), dir)
			start := func(content string) (string, int) {
				t.Helper()
				if err := os.WriteFile(at, []byte(content), 0o755); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
				cmd.Dir = task
				cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+state, "SLURM_PROCID=0", "TMPDIR="+state)
				out, err := cmd.CombinedOutput()
				if err != nil && !errors.As(err, new(*exec.ExitError)) {
					t.Fatal(err)
				}
				return string(out), cmd.ProcessState.ExitCode()
			}
			if out, code := start(good); code != 0 {
				t.Fatalf("what was submitted: got %d: %s", code, out)
			}
			got, err := os.ReadFile(ran)
			if err != nil || !strings.HasPrefix(string(got), "agent\n") || !strings.Contains(string(got), "\na b=$(id) it's\n") {
				t.Errorf("what was submitted was started with %q, %v", got, err)
			}
			if err := os.Remove(ran); err != nil {
				t.Fatal(err)
			}
			refused := 77
			if tt.launcher == "slurm" {
				refused += 128 // so that srun tells it before others
			}
			out, code := start("#!/bin/sh\ntouch " + ran + "\n")
			if code != refused || !strings.Contains(out, "refused: its sha256 is not "+hex.EncodeToString(sum[:])) {
				t.Errorf("another binary: got %d, want %d: %s", code, refused, out)
			}
			if _, err := os.Stat(ran); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("another binary ran: %v", err)
			}
		})
	}
}

// TestHelperIsBeside: what is brought beside the binary lies beside the copy that runs, and is what was submitted.
func TestHelperIsBeside(t *testing.T) {
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	const program, helper = "#!/bin/sh\n\"$0-gpu\"\n", "#!/bin/sh\necho helps\n"
	for _, tt := range starts {
		t.Run(tt.name, func(t *testing.T) {
			dir, o := t.TempDir(), options()
			from := filepath.Join(dir, "store")
			o.Binary, o.Helper = filepath.Join(from, "muster"), filepath.Join(from, "muster-gpu")
			if tt.fetched {
				from = filepath.Join(dir, "task")
				o.Binary, o.Helper = "hdfs://nn/m/1-muster", "hdfs://nn/m/2-muster-gpu"
			}
			o.BinarySHA256, o.HelperSHA256 = digest(program), digest(helper)
			words := tt.words(t, rendered(t, tt.launcher, tt.format, small(t), o), dir)
			for _, folder := range []string{"task", "state", "store"} {
				if err := os.Mkdir(filepath.Join(dir, folder), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			for helper, want := range map[string]string{
				helper:            "helps\n",
				"#!/bin/sh\necho": "muster-gpu: refused: its sha256 is not " + o.HelperSHA256 + ", as submitted; submit the job again\n",
			} {
				if err := errors.Join(os.WriteFile(filepath.Join(from, "muster"), []byte(program), 0o755),
					os.WriteFile(filepath.Join(from, "muster-gpu"), []byte(helper), 0o755)); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
				cmd.Dir = filepath.Join(dir, "task")
				cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+dir+"/state", "SLURM_PROCID=0", "TMPDIR="+dir+"/state")
				out, err := cmd.CombinedOutput()
				if !strings.Contains(string(out), want) || (err == nil) != (want == "helps\n") {
					t.Errorf("got %v, want %q:\n%s", err, want, out)
				}
			}
		})
	}
}

// TestBinaryIsNotStarted has a step before the start fail: the task says which.
func TestBinaryIsNotStarted(t *testing.T) {
	need.Root(t)         // for a mount
	tools := t.TempDir() // all but sha256sum
	for _, name := range []string{"sh", "bash", "cp", "chmod", "chown", "id", "mkdir", "mktemp", "rm"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	const content = "#!/bin/sh\necho started\n"
	sum := sha256.Sum256([]byte(content))
	for _, tt := range starts {
		for _, how := range []struct{ name, mount, path, want string }{
			{"full disk", "size=4k", "", "cannot be copied to"},
			{"no sha256sum", "size=1m", tools, "cannot be checked, as this host has no sha256sum"},
			{"noexec", "noexec", "", "which is mounted noexec"},
		} {
			t.Run(tt.name+", "+how.name, func(t *testing.T) {
				dir, stored := t.TempDir(), filepath.Join(t.TempDir(), "muster")
				if err := os.WriteFile(stored, []byte(content), 0o755); err != nil { //nolint:gosec // a program
					t.Fatal(err)
				}
				o := options()
				o.Binary = stored + "#sha256=" + hex.EncodeToString(sum[:])
				if tt.fetched {
					o.Binary = "hdfs://nn/m/muster#sha256=" + hex.EncodeToString(sum[:])
				}
				words := tt.words(t, rendered(t, tt.launcher, tt.format, small(t), o), dir)
				cmd := exec.CommandContext(t.Context(), "unshare", append([]string{"--mount", "sh", "-c", `set -e
mount -t tmpfs -o "$1" none "$2"
mkdir "$2/task" "$2/state"
cd "$2/task"
case $1 in size=4k) dd if=/dev/zero of=../full bs=4k count=1 status=none ;; esac
ln -s "$3" muster
PATH=$4
shift 4
exec "$@"`, "-", how.mount, dir, stored, cmp.Or(how.path, os.Getenv("PATH"))}, words...)...)
				cmd.Env = append(os.Environ(), "STATE_DIRECTORY="+dir+"/state", "SLURM_PROCID=0", "TMPDIR="+dir+"/state")
				out, err := cmd.CombinedOutput()
				if err == nil || !strings.Contains(string(out), how.want) || strings.Contains(string(out), "its sha256 is not") {
					t.Errorf("got %v, want %q:\n%s", err, how.want, out)
				}
			})
		}
	}
}

// TestAttackNomadTaskFolder: Nomad's task folder is open to all, who could put another folder in the place of the one
// that the checked copy lies in.
func TestAttackNomadTaskFolder(t *testing.T) {
	need.Root(t)
	const content = "#!/bin/sh\necho \"$0\"\n"
	sum := sha256.Sum256([]byte(content))
	for _, tt := range []struct {
		name       string
		owner, uid int
	}{
		{"root's agent", 65534, 0}, {"a user's agent in its own", 64001, 64001}, {"a user's agent in nobody's", 65534, 64001},
	} {
		t.Run(tt.name, func(t *testing.T) {
			top := folder.Temp(t, "muster-nomad-task-")
			task, stored := filepath.Join(top, "task"), filepath.Join(top, "muster")
			if err := errors.Join(os.Mkdir(task, 0o755), os.Chmod(task, 0o777), os.Chown(task, tt.owner, tt.owner),
				os.WriteFile(stored, []byte(content), 0o755)); err != nil { //nolint:gosec // a program
				t.Fatal(err)
			}
			o := options()
			o.Binary = stored + "#sha256=" + hex.EncodeToString(sum[:])
			words := firstOf(hclWords)(t, rendered(t, "nomad", "hcl", small(t), o), "")
			cmd := exec.CommandContext(t.Context(), words[0], words[1:]...)
			cmd.Dir = task
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(tt.uid), Gid: uint32(tt.uid)}}
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Dir(strings.TrimSpace(string(out)))
			if !strings.HasPrefix(dir, task) {
				t.Cleanup(func() { _ = os.RemoveAll(dir) })
			}
			for _, err := range []error{ownfolder.Fixed(dir, tt.uid), ownfolder.Fixed(filepath.Join(dir, "muster"), tt.uid)} {
				if err != nil {
					t.Errorf("the program ran in %s: %v", dir, err)
				}
			}
		})
	}
}

// TestAttackBinaryWithoutDigest: what a launcher fetches from a place that others may write has a digest.
func TestAttackBinaryWithoutDigest(t *testing.T) {
	app := small(t)
	for launcher, url := range map[string]string{"nomad": "https://x/muster", "yarn": "hdfs://nn/muster"} {
		for _, digest := range []string{"", "#sha256=", "#sha256=0a", "#sha256=" + strings.Repeat("g", 64)} {
			o := options()
			o.Binary = url + digest
			if err := renderError(launcher, app, o); err == nil || !strings.Contains(err.Error(), "#sha256=") {
				t.Errorf("%s %s: got %v, want a refusal", launcher, o.Binary, err)
			}
		}
	}
}
