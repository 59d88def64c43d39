package pai_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// lives begins the command of a task: it goes on once all tasks run, and knows which life that is.
const lives = "out=${PAI_OUTPUT_DIR#file://}; . code/lives.sh; "

// livesJob is a job whose tasks begin with lives.
func livesJob(t *testing.T, text string) *job {
	t.Helper()
	j := newJob(t, `{"jobName": "ends", "image": "none", "outputDir": "$PAI_DEFAULT_FS_URI/out", "codeDir": "$PAI_DEFAULT_FS_URI/code", `+text+`}`)
	j.lay("code/lives.sh", read("testdata/lives.sh"))
	return j
}

// What a failure is worth: retryCount counts how often the whole job begins again, and never does a task alone. What the task
// could not help is no part of the count.
func TestRetryCount(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, retries, first, later string // how the first life of worker-1 ends, and how the next ones
		outcome                     string
		code, lives                 int
	}{
		{"none", "0", "exit 3", "exit 0", "failed", 3, 1},
		{"one that helps", "1", "exit 3", "exit 0", "succeeded", 0, 2},
		{"one that does not", "1", "exit 3", "exit 4", "failed", 4, 2},
		{"killed from outside", "0", "kill -KILL $$", "exit 0", "succeeded", 0, 2},
		{"its own doing", "5", "kill -ILL $$", "exit 0", "failed", 132, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := livesJob(t, `
				"taskRoles": [
					{"name": "server", "taskNumber": 1, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, "command": "`+lives+`exec sleep 1000"},
					{"name": "worker", "taskNumber": 2, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0,
						"command": "`+lives+`[ $PAI_TASK_INDEX = 0 ] && exit 0; [ $life = 1 ] && `+tt.first+`; `+tt.later+`"}
				],
				"killAllOnCompletedTaskNumber": 2, "retryCount": `+tt.retries)
			j.onHost().is(t, tt.outcome, tt.code, tt.lives)
			for _, task := range []string{"server-0", "worker-0", "worker-1"} {
				if got := strings.Count(read(filepath.Join(j.store, "out", task)), "\n"); got != tt.lives {
					t.Errorf("%s has had %d lives, want %d", task, got, tt.lives)
				}
			}
		})
	}
}

// A job of 0.14 that uses nothing but what 0.5 has too is not ended by the first of its tasks; that it was guessed is said.
func TestJobOfNoVersion(t *testing.T) {
	t.Parallel()
	j := newJob(t, `{"jobName": "all", "image": "none", "taskRoles": [
		{"name": "task", "taskNumber": 3, "command": "[ $PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX = 0 ] || sleep 1"}]}`)
	e := j.onHost()
	e.is(t, "succeeded", 0, 1)
	for _, task := range []string{"task-0", "task-1", "task-2"} {
		if got := e.exit(t, task); got != 0 {
			t.Errorf("%s ended with %d, want 0", task, got)
		}
	}
	for _, words := range []string{
		"#/taskRoles: got 3 tasks and nothing that tells the version of PAI, want --pai-version 0.5, 0.14 or 1",
		"note: job.json is read as a job of PAI 0.14: nothing in it is of one version alone; --pai-version says otherwise",
	} {
		if !strings.Contains(e.said, words) {
			t.Errorf("run said\n%s\nwant in it %s", e.said, words)
		}
	}
}

// What ends a job of PAI 0.14: the counts of its roles, and nothing else.
func TestTaskCounts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, counts, command string
		outcome               string
		code                  int
		cause                 string
		exits                 [3]int
	}{
		{"by default one failure fails it", ``, `[ $PAI_TASK_INDEX = 1 ] && exit 4; exec sleep 1000`, "failed", 4, "task.a-1 exited with 4", [3]int{143, 4, 143}},
		{"no number of failures does", `"minFailedTaskCount": null,`, `exit $((PAI_TASK_INDEX % 2))`, "succeeded", 0, "task.a-1", [3]int{0, 1, 0}},
		{"the second failure does", `"minFailedTaskCount": 2,`, `[ $PAI_TASK_INDEX = 0 ] || exit 5; exec sleep 1000`, "failed", 5, "task.a-", [3]int{143, 5, 5}},
		{"one success is enough", `"minSucceededTaskCount": 1,`, `[ $PAI_TASK_INDEX = 2 ] || exec sleep 1000`, "succeeded", 0, "", [3]int{143, 143, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			j := livesJob(t, `"jobEnvs": {}, "taskRoles": [
				{"name": "task.a", "taskNumber": 3, "cpuNumber": 1, "memoryMB": 100, "gpuNumber": 0, `+tt.counts+`"command": "`+lives+tt.command+`"}]`)
			e := j.onHost()
			e.is(t, tt.outcome, tt.code, 1, tt.cause)
			for i, want := range tt.exits {
				if got := e.exit(t, "task.a-"+string(rune('0'+i))); got != want {
					t.Errorf("task %d ended with %d, want %d", i, got, want)
				}
			}
		})
	}
}
