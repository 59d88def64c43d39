package pai_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
)

// examples are the job files of the documents, and the folder of their code.
const examples = "../../doc/examples/pai"

// named are the variables of PAI that a text names, as the shell does.
var named = regexp.MustCompile(`\$\{?(PAI_\w+)`)

// Nothing is wrong with an example, and the plan tells each variable that the command of a task role names.
func TestExamplesPlan(t *testing.T) {
	for name, tasks := range map[string][]string{
		"tensorflow-example":             {"main"},
		"tensorflow-distributed-example": {"ps_server", "worker"},
		"tensorboard-example":            {"tensorboard"},
		"cntk-example":                   {"worker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJob(t, read(filepath.Join(examples, name+".json")))
			said, err := j.command("validate", j.file).CombinedOutput()
			if want := "ok: " + name + ","; err != nil || !strings.Contains("\n"+string(said), "\n"+want) {
				t.Fatalf("validate: %v, %q, want a line that begins with %q", err, said, want)
			}
			for _, task := range tasks {
				cmd := j.command("plan", j.file, "--component", task, "--roster", "example", "--default-fs", "file:"+j.store)
				cmd.Stderr = t.Output()
				plan, err := cmd.Output()
				if err != nil {
					t.Fatalf("plan: %v", err)
				}
				var told struct {
					Start struct {
						Argv []string          `json:"argv"`
						Env  map[string]string `json:"env"`
					} `json:"start"`
				}
				if err := json.Unmarshal(plan, &told); err != nil {
					t.Fatal(err)
				}
				command := told.Start.Argv[len(told.Start.Argv)-1]
				words := named.FindAllStringSubmatch(command, -1)
				if len(words) == 0 {
					t.Errorf("the command of %s names no variable: %s", task, command)
				}
				for _, word := range words {
					if value := told.Start.Env[word[1]]; value == "" || strings.Contains(value, "{") {
						t.Errorf("the command of %s names %s, which is told as %q", task, word[1], value)
					}
				}
				if out, err := exec.Command("bash", "-n", "-c", command).CombinedOutput(); err != nil {
					t.Errorf("the command of %s is none: %v, %s", task, err, out)
				}
			}
		})
	}
}

// The distributed example trains with TensorFlow: two workers on one server, and what they have learnt is left.
func TestExampleTrains(t *testing.T) {
	j := newJob(t, read(filepath.Join(examples, "tensorflow-distributed-example.json")))
	j.lay("code/line.py", read(filepath.Join(examples, "code/line.py")))
	e := j.onHost("--env", "PATH="+tensorflow(t)+":/usr/bin:/bin")
	e.is(t, "succeeded", 0, 1)
	for _, task := range []string{"worker-0", "worker-1"} {
		if got, want := j.log(task), " ended at step 20"; !strings.Contains(got, want) {
			t.Errorf("%s wrote %q, want %q in it", task, got, want)
		}
	}
	leftOfTraining(t, j.store)
}

// leftOfTraining wants of the distributed example a model and curves, of its first worker alone.
func leftOfTraining(t *testing.T, store string) {
	t.Helper()
	for _, pattern := range []string{"model-*.index", "events.out.tfevents.*"} {
		left, err := filepath.Glob(filepath.Join(store, "output/tensorflow-distributed-example", pattern))
		if err != nil || len(left) != 1 {
			t.Errorf("the job has left %v as %s: %v", left, pattern, err)
		}
	}
}

// tensorflow is the folder of the python that scripts/lab/python has made for TensorFlow.
func tensorflow(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("../../scripts/lab/python", "where", "tensorflow").Output()
	if err != nil {
		t.Fatal(err)
	}
	path := strings.TrimSpace(string(out))
	if _, err := os.Stat(path); err != nil {
		need.Skip(t, "no TensorFlow (make it with scripts/lab/python tensorflow): "+err.Error())
	}
	return filepath.Dir(path)
}
