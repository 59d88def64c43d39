package data_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// On a real HDFS, all instances save with one time; the save before a stop has only what has changed since, and nothing else is left.
func TestSavesToHDFS(t *testing.T) {
	t.Parallel()
	c := hadoop.Shared(t)
	url := strings.TrimRight(c.URI, "/") + c.Folder(t) + "/out"
	store, dir, err := hdfs.Config{Conf: c.ConfDir}.Open(context.WithoutCancel(t.Context()), url)
	if err != nil {
		t.Fatal(err)
	}
	j := newJob(t, 2, settings{
		"muster.command": `echo $MUSTER_INDEX > model/who; echo first > model/step; touch ready
			until [ -e second ]; do sleep 0.05; done; echo later > model/step; touch again; exec sleep 600`,
		"muster.output.model": url, "muster.outputs.incremental": "true",
	})
	j.onHadoop(c)
	end := j.begin(j.command(j.runArgs("--engine", "process")...))
	j.runs("worker-0/ready", "worker-1/ready")
	first := j.save()
	if first.Saved != 2 || first.Files != 4 || len(first.Failed) != 0 || len(first.To) != 1 || first.To[0] != url+"/interResult/interResult_"+first.Stamp {
		t.Errorf("got %+v, want 4 files of 2 instances below %s", first, url)
	}
	for _, in := range []string{"worker-0", "worker-1"} {
		j.must(os.WriteFile(filepath.Join(j.work, in, "second"), nil, 0o600))
	}
	j.runs("worker-0/again", "worker-1/again")
	if out, said, code := j.verb("stop", j.app, "--save"); code != 0 || !strings.Contains(out, "stopped") {
		t.Errorf("stop --save: exit code %d, %s%s", code, out, said)
	}
	if e := end(); e.Outcome != "stopped" {
		t.Errorf("got %s (%s)", e.Outcome, e.Cause)
	}
	got, second := map[string]string{}, ""
	for name, text := range (onHDFS{t, store, dir}).files() {
		save, below, _ := strings.Cut(strings.TrimPrefix(name, "interResult/interResult_"), "/")
		if save == first.Stamp {
			got["first/"+below] = text
			continue
		}
		if second == "" {
			second = save
		}
		got[strings.Replace(save, second, "second", 1)+"/"+below] = text
	}
	j.same(got, map[string]string{
		"first/worker-0/who": "0\n", "first/worker-0/step": "first\n", "first/worker-1/who": "1\n", "first/worker-1/step": "first\n",
		"second/worker-0/step": "later\n", "second/worker-1/step": "later\n",
	})
	if !stampForm.MatchString(second) || second <= first.Stamp {
		t.Errorf("the second save is called %s, the first %s", second, first.Stamp)
	}
}
