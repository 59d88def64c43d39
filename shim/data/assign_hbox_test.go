package data_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/shim/data"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/plan"
)

// submitted is the App of words of hbox-submit.
func submitted(t *testing.T, words ...string) appdef.App {
	t.Helper()
	s, found := hbox.Parse(append(words, "sh", "train.sh"), hbox.Site{})
	if bad := found.Errors(); len(bad) > 0 {
		t.Fatal(bad)
	}
	return s.App
}

// shares says which of n files each instance of an app gets, in the order of the turns. File 0 is empty.
func shares(t *testing.T, app appdef.App, n int) string {
	t.Helper()
	files := make([]transfer.File, n)
	for i := range files {
		files[i] = transfer.File{Path: "/in/" + strconv.Itoa(i), Size: int64(i)}
	}
	var b strings.Builder
	for _, c := range app.Components {
		for index := range c.Instances {
			p, found := plan.Build(app, plan.Request{Component: c.Name, Index: index, Digest: "-", Allocation: plan.Allocation{Host: "h", User: "ada"}})
			if bad := found.Errors(); len(bad) > 0 {
				t.Fatal(bad)
			}
			share := "nothing"
			if in := p.Inputs; in != nil && in.Workers > 0 {
				deal := data.Assignment{Workers: in.Workers, Chief: in.Chief}
				share = numbers(deal.Share(files, in.Worker))
			}
			fmt.Fprintf(&b, "  %s-%d %s", c.Name, index, share)
		}
	}
	return b.String()
}

func numbers(files []transfer.File) string {
	if len(files) == 0 {
		return "-"
	}
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = filepath.Base(f.Path)
	}
	return strings.Join(names, ",")
}

// Who gets which file of a submission, for up to 13 files and 5 workers: as HBox deals them out, with a chief's minimum, with
// the parameter servers among the readers, and with an evaluator.
func TestSubmissionsGolden(t *testing.T) {
	for name, words := range map[string][]string{
		"chief":     {"--conf", "hbox.chief.worker.minimum.data=true"},
		"chief_2":   {"--conf", "hbox.chief.worker.minimum.data=true", "--conf", "hbox.chief.worker.minimum.file.num=2", "--input", "/other#other"},
		"ps":        {"--ps-num", "2", "--conf", "hbox.tf.input.ps.enable=true", "--conf", "hbox.chief.worker.minimum.data=true"},
		"evaluator": {"--tf-evaluator", "true", "--ps-num", "1"},
	} {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for workers := 1; workers <= 5; workers++ {
				app := submitted(t, append([]string{"--app-type", "tensorflow", "--worker-num", strconv.Itoa(workers), "--input", "/in#data"}, words...)...)
				for n := range 14 {
					fmt.Fprintf(&b, "%d files:%s\n", n, shares(t, app, n))
				}
			}
			golden(t, filepath.Join("testdata", "assign_"+name+".txt"), b.String())
		})
	}
}

func golden(t *testing.T, path, text string) {
	t.Helper()
	if flag.Lookup("update").Value.String() == "true" {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Error("-want +got\n" + diff)
	}
}
