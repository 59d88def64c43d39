package training_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/muster-agent/muster/tests/commandline"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/netns"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// Ranks on two hosts meet at the rendezvous of the first. Gloo listens at the address to which the host's name leads, so
// each host has a name of its own: its address.
func TestHorovodOnTwoHosts(t *testing.T) {
	need.Root(t)
	at := python(t, "horovod")
	net := netns.New(t, 2)
	consul := consulserver.Start(t, consulserver.Options{Net: net})
	h := commandline.NewHost(t, "nsenter")
	work := commandline.WorkFolder(t)
	var agents []*commandline.Command
	for i := range 2 {
		agents = append(agents, h.Start("--net=/run/netns/"+net.Name(i), "--", "unshare", "--uts", "sh", "-c", `hostname "$0" && exec "$@"`, net.Addr(i), muster, "agent", "--app", "catalog:horovod", "--app-id", "hvd",
			"--component", "worker", "--index", strconv.Itoa(i), "--instances", "worker=2", "--host", net.Addr(i), "--registry", consul.URL(),
			"--work-dir", work, "--state-dir", filepath.Join(t.TempDir(), "state"), "--engine", "process", "--set", "muster.python="+at,
			"--set", "site.global.train.steps=50", "--set", "site.global.train.pace=0", "--set", "muster.restart=never"))
	}
	models := map[string]bool{}
	for i, a := range agents {
		a.Succeed()
		said, err := os.ReadFile(filepath.Join(work, "log", "worker-"+strconv.Itoa(i), "stdout.log"))
		if err != nil {
			t.Fatal(err)
		}
		model := regexp.MustCompile(`rank ` + strconv.Itoa(i) + ` of 2: starting at step 0\n(?s:.*)finished at step 50 with model ([0-9a-f]{16})`).FindSubmatch(said)
		if model == nil {
			t.Fatalf("worker-%d said %q", i, said)
		}
		models[string(model[1])] = true
	}
	if len(models) != 1 {
		t.Errorf("models %v, want one and the same", models)
	}
}
