package hbox_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef/hbox"
)

// Any words are read without a panic, twice the same; and an App without error has a command line that gives it again.
func FuzzParse(f *testing.F) {
	for _, line := range []string{
		"", "--help", "--app-type\ntensorflow\n--ps-num\n2\n--worker-num\n3\n--tf-evaluator\ntrue\npython\na.py",
		"—workerNum\n2\n--input\n/a,/b#d\n--output\n/o#m\n--output-index\n1\n--\n-x", "--conf\nhbox.container.env.A=${USER}\n--hbox-cmd\na  b\nc",
		"--app-type\nhorovod\n--conf\nhbox.horovod.extra.ld.lirbary.path=/x y\n--user-path\n/p'q\ntrue", "--board-enable\ntrue\n--board-logdir\na b\ntrue",
		"--conf\nworker:muster.side.board=x\n--conf\nmuster.complete.minFailed=null\ntrue", "--app-type\nvpc\n--duration\n0",
	} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var args []string
		if line != "" {
			args = strings.Split(line, "\n")
		}
		s, found := hbox.Parse(args, hbox.Site{})
		again, foundAgain := hbox.Parse(args, hbox.Site{})
		if diff := cmp.Diff(s.App, again.App, meaning()) + cmp.Diff(found, foundAgain); diff != "" {
			t.Fatalf("two readings differ: %s", diff)
		}
		if s.Verb != hbox.VerbRun || len(found.Errors()) > 0 {
			return
		}
		words, unsupported := hbox.Write(s.App)
		back, found := hbox.Parse(words, hbox.Site{})
		if len(unsupported) > 0 || len(found.Errors()) > 0 {
			t.Fatalf("%q: unsupported %q, found %v", words, unsupported, found.Errors())
		}
		if diff := cmp.Diff(s.App, back.App, meaning()); diff != "" {
			t.Fatalf("%q (-first +again):\n%s", words, diff)
		}
	})
}
