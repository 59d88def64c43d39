package scripts_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/status"
)

// running is a process of a job.
type running struct {
	pid     int // on this host
	command string
}

// processes are those whose environment says that they belong to an instance of this job, whoever their parent is; those
// of all instances for "".
func (j *job) processes(instance string) []running {
	j.t.Helper()
	var found []running
	for _, file := range glob(j.t, "/proc/[0-9]*/environ") {
		env := strings.Split(read(file), "\x00")
		if !slices.Contains(env, "MUSTER_APP_ID="+j.app) || instance != "" && !slices.Contains(env, "MUSTER_INSTANCE="+instance) {
			continue
		}
		dir := filepath.Dir(file)
		pid, err := strconv.Atoi(filepath.Base(dir))
		j.must(err)
		found = append(found, running{pid, strings.TrimSpace(strings.ReplaceAll(read(filepath.Join(dir, "cmdline")), "\x00", " "))})
	}
	return found
}

// daemon is the process of an instance whose command has these words.
func (j *job) daemon(instance, words string) int {
	j.t.Helper()
	var pid int
	await(j.t, "a process of "+instance+" with "+words, func() bool {
		all := j.processes(instance)
		i := slices.IndexFunc(all, func(r running) bool { return strings.Contains(r.command, words) })
		if i >= 0 {
			pid = all[i].pid
		}
		return i >= 0
	})
	return pid
}

// gone waits for the end of a process, as a zombie too.
func gone(t testing.TB, pid int) {
	t.Helper()
	await(t, "the end of process "+strconv.Itoa(pid), func() bool { return !lives(pid) })
}

func lives(pid int) bool {
	_, after, ok := strings.Cut(read("/proc/"+strconv.Itoa(pid)+"/stat"), ") ")
	return ok && after[0] != 'Z' && after[0] != 'X'
}

// remains are what the agents of instances leave for the next ones, should they be killed: what must be gone at the end.
func (j *job) remains(instances ...string) []status.InstanceFile {
	j.t.Helper()
	var all []status.InstanceFile
	for _, name := range instances {
		var f status.InstanceFile
		j.must(status.ReadJSON(filepath.Join(j.state, "apps", j.app, name+".json"), &f))
		all = append(all, f)
	}
	return all
}

// nothingLeft asserts that neither process, cgroup, mount, socket nor folder of a container is there.
func (j *job) nothingLeft(was ...status.InstanceFile) {
	j.t.Helper()
	if left := j.processes(""); len(left) > 0 {
		j.t.Errorf("processes are left: %v", left)
	}
	for _, f := range was {
		for _, path := range slices.Concat(f.Cgroups, f.Dirs) {
			if !absent(path) {
				j.t.Errorf("%s is left", path)
			}
		}
		for _, path := range f.Cgroups {
			if path = filepath.Dir(path); !absent(path) { // the app's, of which none is left
				j.t.Errorf("%s is left", path)
			}
		}
	}
	for _, pattern := range []string{
		filepath.Join(j.work, "root", "*"), filepath.Join(j.state, "apps", j.app, "*.sock"), filepath.Join(j.state, "s", "*.sock"),
		filepath.Join(j.state, "apps", j.app, "*-[0-9]*.json"),
	} {
		if left := glob(j.t, pattern); len(left) > 0 {
			j.t.Errorf("left: %v", left)
		}
	}
	for line := range strings.Lines(read("/proc/self/mountinfo")) {
		if strings.Contains(line, filepath.Dir(j.work)) {
			j.t.Errorf("a mount is left: %s", line)
		}
	}
}

func absent(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}
