package data_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
)

// parts are n small files of one input.
func (j *job) parts(n int) {
	files := map[string]string{}
	for i := range n {
		files["in/part-"+strconv.Itoa(i)] = "file " + strconv.Itoa(i) + "\n"
	}
	j.lay(files)
}

// Five files for three workers come as copies that may be changed; what the workers make of them is gathered.
func TestDownloadAndUpload(t *testing.T) {
	t.Parallel()
	for _, user := range []string{"", "nobody"} {
		t.Run("user "+user, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, 3, settings{
				"muster.command":      `cat data/* > model/words && echo more >> data/$(ls data | head -n 1) && id -un > model/who && mkdir model/sub && ls data > model/sub/seen`,
				"muster.input.data":   "in",
				"muster.output.model": "${NN_URI}/out",
			})
			if user != "" {
				if os.Geteuid() != 0 {
					need.Skip(t, "only root has processes of another user")
				}
				folder.OfAll(t, filepath.Join(j.store, "out")) // whoever runs writes there
			}
			j.parts(5)
			args, who := []string{}, strings.TrimSpace(output(t, "id", "-un"))
			if user != "" {
				args, who = append(args, "--set", "worker:muster.user="+user), user
			}
			j.run(args...).succeeds(t)
			j.same(j.files(filepath.Join(j.store, "out")), map[string]string{
				"worker-0/words": "file 0\nfile 3\n", "worker-0/sub/seen": "part-0\npart-3\n", "worker-0/who": who + "\n",
				"worker-1/words": "file 1\nfile 4\n", "worker-1/sub/seen": "part-1\npart-4\n", "worker-1/who": who + "\n",
				"worker-2/words": "file 2\n", "worker-2/sub/seen": "part-2\n", "worker-2/who": who + "\n",
			})
			if got := read(filepath.Join(j.store, "in", "part-0")); got != "file 0\n" {
				t.Errorf("the source is changed: %q", got)
			}
			if left, err := os.ReadDir(filepath.Join(j.store, "out", "_temporary")); err == nil {
				t.Errorf("there is left in _temporary: %v", left)
			}
		})
	}
}

func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	text, err := exec.CommandContext(t.Context(), name, args...).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Without a default filesystem that somebody names there is one in the work folder.
func TestStoreInTheWorkFolder(t *testing.T) {
	t.Parallel()
	j := newJob(t, 1, settings{"muster.command": "echo made > model/it", "muster.output.model": "a/b"})
	cmd := j.command("run", j.dir, "--app-id", j.app, "--work-dir", j.work, "--json")
	cmd.Env = append(cmd.Env, "HADOOP_CONF_DIR="+j.dir) // one without Hadoop's files
	j.end(cmd).succeeds(t)
	j.same(j.files(filepath.Join(j.work, "store", "a", "b")), map[string]string{"worker-0/it": "made\n"})
}

// fs.defaultFS of Hadoop's configuration is the default filesystem, and the plan says so.
func TestDefaultFilesystemOfHadoop(t *testing.T) {
	t.Parallel()
	j := newJob(t, 1, settings{"muster.command": "echo ${NN_URI} > model/uri", "muster.output.model": "out"})
	site := `<?xml version="1.0"?><configuration><property><name>fs.defaultFS</name><value>file://` + j.store + `</value></property></configuration>`
	conf := filepath.Join(j.top, "conf")
	folder.Lay(t, conf, map[string]string{"core-site.xml": site})
	j.env = append(j.env, "HADOOP_CONF_DIR="+conf)
	j.end(j.command("run", j.dir, "--app-id", j.app, "--work-dir", j.work, "--json")).succeeds(t)
	j.same(j.files(filepath.Join(j.store, "out")), map[string]string{"worker-0/uri": "file:" + j.store + "\n"})
	var plan struct {
		DefaultFS string            `json:"default_fs"`
		Origins   map[string]string `json:"origins"`
	}
	for want, args := range map[string][]string{
		"fs.defaultFS of core-site.xml": nil, "--default-fs": {"--default-fs", "file:/elsewhere"},
	} {
		out, err := j.command(append([]string{"plan", j.dir, "--component", "worker"}, args...)...).Output()
		j.must(err)
		j.must(json.Unmarshal(out, &plan))
		if plan.Origins["/default_fs"] != want || args != nil && plan.DefaultFS != "file:/elsewhere" {
			t.Errorf("plan %v: default filesystem %s from %q, want from %q", args, plan.DefaultFS, plan.Origins["/default_fs"], want)
		}
	}
}

// A process is told its files by a variable, or by a file where the variable would be too long.
func TestPlaceholder(t *testing.T) {
	t.Parallel()
	j := newJob(t, 2, settings{
		"muster.command":            `if [ -n "$INPUT_FILE_LIST" ]; then echo "$INPUT_FILE_LIST" > told/list; else cp inputFileList.txt told/file; fi; [ -d data ] && touch told/data; true`,
		"muster.inputs.strategy":    "placeholder",
		"muster.input.data":         "in/part-*",
		"muster.output.told":        "out",
		"muster.restart":            "never",
		"muster.inputs.whole":       "false",
		"global:muster.framework":   "none",
		"muster.complete.minFailed": "1",
	})
	j.parts(3)
	in := filepath.Join(j.store, "in")
	j.run().succeeds(t)
	j.same(j.files(filepath.Join(j.store, "out")), map[string]string{
		"worker-0/list": `{"data":["` + in + `/part-0","` + in + `/part-2"]}` + "\n",
		"worker-1/list": `{"data":["` + in + `/part-1"]}` + "\n",
	})

	j.must(os.RemoveAll(filepath.Join(j.store, "out")))
	files := map[string]string{}
	for i := range 2000 { // of which the list is longer than HBox lets variables be
		files["in/part-"+strings.Repeat("x", 60)+strconv.Itoa(i)] = ""
	}
	j.lay(files)
	j.app += "b"
	j.run("--set", "worker:muster.inputs.whole=true").succeeds(t)
	got := j.files(filepath.Join(j.store, "out"))
	var list map[string][]string
	j.must(json.Unmarshal([]byte(got["worker-1/file"]), &list))
	if len(list["data"]) != 2003 || got["worker-0/file"] != got["worker-1/file"] || strings.Count(got["worker-0/file"], "\n") != 1 || got["worker-0/list"] != "" {
		t.Errorf("told of %d files, the same: %t, on %d lines, as a variable: %.20q", len(list["data"]), got["worker-0/file"] == got["worker-1/file"],
			strings.Count(got["worker-0/file"], "\n"), got["worker-0/list"])
	}
}

// The first reader has so many files with something in them, and no more; the list is in a file where it is longer than is
// asked for.
func TestChiefAndListLength(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3, settings{
		"muster.command": "ls data > seen/files", "muster.input.data": "in", "muster.output.seen": "out", "muster.inputs.chief": "1", "muster.inputs.parallel": "1", "muster.inputs.retries": "0",
	})
	j.parts(6)
	j.lay(map[string]string{"in/part-0": ""})
	j.run().succeeds(t)
	got := j.files(filepath.Join(j.store, "out"))
	delete(got, "_SUCCESS")
	j.same(got, map[string]string{"worker-0/files": "part-0\npart-1\n", "worker-1/files": "part-2\npart-4\n", "worker-2/files": "part-3\npart-5\n"})
	j.must(os.RemoveAll(filepath.Join(j.store, "out")))
	j.app += "b"
	j.run("--set", "worker:muster.inputs.strategy=placeholder", "--set", "worker:muster.inputs.list.length=100",
		"--set", `worker:muster.command=echo "${INPUT_FILE_LIST-none}" > seen/list && cp inputFileList.txt seen/file`).succeeds(t)
	got = j.files(filepath.Join(j.store, "out"))
	in := filepath.Join(j.store, "in")
	if want := `{"data":["` + in + `/part-2","` + in + `/part-4"]}` + "\n"; got["worker-1/file"] != want || got["worker-1/list"] != "none\n" {
		t.Errorf("got %q, want the list in a file: %s", got, want)
	}
}

// Fewer files than workers: the run goes on, and names who has none. Two files of one name need new ones.
func TestIdleAndRenamed(t *testing.T) {
	t.Parallel()
	j := newJob(t, 3, settings{
		"muster.command": "ls data | wc -l > seen/n", "muster.input.data": "{a,b}/x", "muster.output.seen": "out", "muster.inputs.rename": "true",
	})
	j.lay(map[string]string{"a/x": "1", "b/x": "2"})
	j.run().succeeds(t)
	j.same(j.files(filepath.Join(j.store, "out")), map[string]string{"worker-0/n": "1\n", "worker-1/n": "1\n", "worker-2/n": "0\n"})
	for _, instance := range []string{"worker-0", "worker-2"} {
		if !strings.Contains(j.log(instance), "idle=worker-2") {
			t.Errorf("%s does not say that worker-2 has no file", instance)
		}
	}
}

// What cannot be run is told before a process starts, with what would do.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		set   settings
		class string // empty: refused before there is a run
		code  int
		words []string
	}{
		{"two of one name", settings{"muster.input.data": "{a,b}/x"}, "definition", 65, []string{"/fs/a/x and /", "/fs/b/x", "muster.inputs.rename=true"}},
		{"not there", settings{"muster.input.data": "a,none/at/all"}, "data", 69, []string{"input data", "/fs/none/at/all"}},
		{"a pattern without a match", settings{"muster.input.data": "a/*.csv"}, "data", 69, []string{"/fs/a/*.csv"}},
		{"ftp", settings{"muster.input.data": "ftp://host/in"}, "", 65, []string{"muster.input.data", `got ftp: in "ftp://host/in"`, "want file:"}},
		{"an output on the web", settings{"muster.output.model": "https://host/out"}, "", 65, []string{"muster.output.model", "got https:", "nothing is left on a web server"}},
		{"s3", settings{"muster.output.model": "s3://bucket/out"}, "", 65, []string{"muster.output.model", "got s3:", "want file:"}},
		{"no code", settings{"global:muster.pai.version": "0.14", "global:muster.pai.code.dir": "none"}, "definition", 65, []string{"codeDir", "/fs/none", "not there"}},
		{"code in the way", settings{"global:muster.pai.version": "1", "global:muster.pai.code.dir": "a/app"}, "", 65, []string{"muster.pai.code.dir", "./app/, which is muster's"}},
		{"an output in use", settings{"muster.output.model": "taken"}, "definition", 65, []string{"/fs/taken/worker-0", "remove it, or name another place"}},
		{"a link out of an output", settings{"muster.output.model": "out", "muster.command": "ln -s /etc/hostname model/link"}, "data", 69, []string{"output model", "link"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			set := settings{"muster.command": "touch ran", "muster.restart": "never"}
			maps.Copy(set, tt.set)
			j := newJob(t, 1, set)
			j.lay(map[string]string{"a/x": "1", "b/x": "2", "a/app/x": "", "taken/worker-0/old": "kept"})
			e := j.run()
			if tt.class != "" {
				e.fails(t, tt.class, tt.code, tt.words...)
			} else {
				if e.code != tt.code {
					t.Errorf("exit code %d, want %d\n%s", e.code, tt.code, e.said)
				}
				for _, w := range tt.words {
					if !strings.Contains(e.said, w) {
						t.Errorf("said %q: want %q in it", e.said, w)
					}
				}
			}
			if _, err := os.Stat(filepath.Join(j.work, "worker-0", "ran")); err == nil {
				t.Error("the process ran")
			}
			if got := read(filepath.Join(j.store, "taken/worker-0/old")); got != "kept" {
				t.Errorf("somebody else's output is %q", got)
			}
			if got := j.files(filepath.Join(j.store, "out")); len(got) > 0 {
				t.Errorf("there is left: %v", got)
			}
		})
	}
}

// An agent that is killed while it copies leaves no file under its own name that is not whole; the next one brings all.
func TestKilledWhileItCopies(t *testing.T) {
	t.Parallel()
	const n, size = 3000, 3000
	j := newJob(t, 1, settings{"muster.command": "cat data/* | wc -c > seen/bytes; ls -A data | wc -l > seen/files", "muster.input.data": "in", "muster.output.seen": "out"})
	files := map[string]string{}
	for i := range n {
		files["in/part-"+strconv.Itoa(i)] = strings.Repeat(strconv.Itoa(i%10), size)
	}
	j.lay(files)
	cmd := j.command(j.runArgs()...)
	end := j.begin(cmd)
	data := filepath.Join(j.work, "worker-0", "data")
	await(t, "the first file", func() bool {
		entries, _ := os.ReadDir(data)
		return len(entries) > 20
	})
	agent := j.agent(cmd.Process.Pid)
	j.must(cmd.Process.Signal(syscall.SIGSTOP)) // it would launch another at once
	j.must(syscall.Kill(agent, syscall.SIGKILL))
	await(t, "the agent's death", func() bool {
		state, err := os.ReadFile("/proc/" + strconv.Itoa(agent) + "/stat")
		return err != nil || strings.Contains(string(state), ") Z ")
	})
	whole := 0
	for name, text := range j.files(data) {
		switch want, ours := files["in/"+name]; {
		case !ours && strings.HasPrefix(name, ".muster-half-"):
		case text != want:
			t.Errorf("%s has %d bytes, want %d", name, len(text), size)
		default:
			whole++
		}
	}
	if whole == n {
		t.Fatal("the agent was killed too late: all is there")
	}
	j.must(cmd.Process.Signal(syscall.SIGCONT))
	end().succeeds(t)
	j.same(j.files(filepath.Join(j.store, "out")), map[string]string{
		"worker-0/bytes": strconv.Itoa(n*size) + "\n", "worker-0/files": strconv.Itoa(n) + "\n",
	})
}

// agent is the process of the one agent of a run.
func (j *job) agent(run int) int {
	j.t.Helper()
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(run) + "/task/*/children")
	j.must(err)
	for _, task := range tasks {
		for pid := range strings.FieldsSeq(read(task)) {
			if strings.Contains(read("/proc/"+pid+"/cmdline"), "agent\x00--app") {
				n, err := strconv.Atoi(pid)
				j.must(err)
				return n
			}
		}
	}
	j.t.Fatal("muster run has no agent")
	return 0
}
