package pai_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// printed are a task's lines.
func (j *job) printed(task string) []string {
	return strings.Split(strings.TrimSuffix(j.log(task), "\n"), "\n")
}

// says asserts that a task has printed exactly this.
func (j *job) says(task string, want ...string) {
	j.t.Helper()
	if got := strings.Join(j.printed(task), "\n"); got != strings.Join(want, "\n") {
		j.t.Errorf("%s wrote\n%s\nwant\n%s", task, got, strings.Join(want, "\n"))
	}
}

// A command runs as it is written, over several lines and with whatever it holds; jobEnvs come last, over PAI's own variables,
// and nothing is filled in.
func TestCommandAndVariables(t *testing.T) {
	t.Parallel()
	j := newJob(t, `{
		"jobName": "told", "image": "none",
		"jobEnvs": {"PAI_JOB_NAME": "another", "COUNT": 5, "RAW": "$HOME ${USER}  * ${a.b_HOST}", "NO": false},
		"taskRoles": [{"name": "a.b", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0,
			"command": "cd /\nfor i in 1 2; do\n\techo \"line $i\t${i}\"\ndone\nfalse\necho \"it went on in $(pwd) with $undefined\\\\n\"\necho $PAI_JOB_NAME $QIZHI_JOB_NAME $COUNT $NO\necho \"$RAW\""}]
	}`)
	j.onHost().is(t, "succeeded", 0, 1)
	j.says("a.b-0", "line 1\t1", "line 2\t2", `it went on in / with \n`, "another told 5 false", "$HOME ${USER}  * ${a.b_HOST}")
}

// A role that no shell can name is told of under its own name and with _ as well.
func TestNamesNoShellKnows(t *testing.T) {
	t.Parallel()
	j := newJob(t, `{
		"jobName": "names", "image": "none",
		"taskRoles": [{"name": "a.b~c", "taskNumber": 2, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0,
			"portList": [{"label": "x.y", "beginAt": 0, "portNumber": 2}],
			"command": "tr '\\0' '\\n' </proc/$$/environ | grep -E '_(a.b.c_HOST|x.y_PORT)_LIST=' | sort; echo $QIZHI_TASK_ROLE_a_b_c_HOST_LIST; echo $QIZHI_CONTAINER_HOST_PORT_LIST"}],
		"killAllOnCompletedTaskNumber": 2
	}`)
	j.onHost().is(t, "succeeded", 0, 1)
	for i := range 2 {
		lines := j.printed(fmt.Sprintf("a.b~c-%d", i))
		if len(lines) != 14 {
			t.Fatalf("task %d wrote %q, want 12 variables and 2 lines", i, lines)
		}
		hosts, ports := lines[12], regexp.MustCompile(`^http:\d+;ssh:\d+;x\.y:(\d+,\d+);$`).FindStringSubmatch(lines[13])
		if strings.Count(hosts, ",") != 1 || ports == nil {
			t.Fatalf("task %d: hosts %q, ports %q, want two hosts and all three labels", i, hosts, lines[13])
		}
		var want []string
		for _, prefix := range []string{"PAI_", "QIZHI_"} {
			for _, name := range []string{"CONTAINER_HOST__x.y", "CONTAINER_HOST__x_y", "CONTAINER_HOST_x.y", "CONTAINER_HOST_x_y"} {
				want = append(want, prefix+name+"_PORT_LIST="+ports[1])
			}
			for _, name := range []string{"a.b~c", "a_b_c"} {
				want = append(want, prefix+"TASK_ROLE_"+name+"_HOST_LIST="+hosts)
			}
		}
		for _, line := range want {
			if !strings.Contains("\n"+strings.Join(lines, "\n")+"\n", "\n"+line+"\n") {
				t.Errorf("task %d was not told %s, but %q", i, line, lines)
			}
		}
	}
}

// codeDir comes below its own last name, in every generation, and may be changed there. PAI 0.14 fetches it with `hdfs dfs -get`
// into a folder that exists, as 0.5 does, and only its own container puts one more folder around it.
func TestCodeDir(t *testing.T) {
	need.Root(t)
	t.Parallel()
	for _, version := range []string{"0.5", "0.14", "1"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, `{
				"jobName": "code", "image": "none", "codeDir": "$PAI_DEFAULT_FS_URI/my/src",
				"taskRoles": [{"name": "task", "command": "ls; ls src src/lib; sh src/main.sh; echo echo changed >>src/main.sh && touch src/new && sh src/main.sh"}]
			}`)
			j.lay("my/src/main.sh", "echo hello from $(basename $(pwd))\n")
			j.lay("my/src/lib/words", "")
			j.onHost("--engine", "container", "--pai-version", version).is(t, "succeeded", 0, 1)
			j.says("task-0", "app", "roster.json", "src", "src:", "lib", "main.sh", "", "src/lib:", "words",
				"hello from task-0", "hello from task-0", "changed")
			if got := read(filepath.Join(j.store, "my", "src", "main.sh")); strings.Contains(got, "changed") {
				t.Errorf("codeDir itself is changed: %q", got)
			}
		})
	}
}

// SCM's notebook has no token: it runs as it is written, and everybody is warned.
func TestOpenNotebook(t *testing.T) {
	t.Parallel()
	j := newJob(t, read("../jobs/pai/jupyter.json"))
	const warning = "--NotebookApp.token without a token"
	for _, verb := range []string{"validate", "plan"} {
		out, err := j.command(verb, j.file).CombinedOutput()
		if err != nil || !strings.Contains(string(out), warning) {
			t.Errorf("%s: %v, %s, want a warning", verb, err, out)
		}
	}
	j.lay("bin/jupyter", "#!/bin/sh\necho $PAI_CONTAINER_HOST_jupyter_PORT_LIST\nprintf '%s\\n' \"$@\"\n")
	j.runnable("bin/jupyter")
	e := j.onHost("--set", "task_1:yarn.io/gpu=0", "--env", "PATH="+filepath.Join(j.store, "bin")+":/usr/bin:/bin")
	e.is(t, "succeeded", 0, 1)
	if !strings.Contains(e.said, warning) {
		t.Errorf("run said %s, want a warning", e.said)
	}
	port := j.printed("task_1-0")[0]
	j.says("task_1-0", port, "notebook", "--allow-root", "--no-browser", "--ip", "0.0.0.0", "--port="+port, `--NotebookApp.token=""`,
		`--NotebookApp.allow_origin="*"`, `--NotebookApp.base_url="/"`)
}
