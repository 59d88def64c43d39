package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/netns"
	"github.com/muster-agent/muster/tests/servers/consulserver"
)

// TestThreeHosts types the page on three hosts, each with folders of its own, against the Consul that the page configures.
func TestThreeHosts(t *testing.T) {
	const name = "doc/three-hosts.md"
	t.Parallel()
	need.Root(t)
	python(t)
	consul, err := consulserver.Binary()
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, name)
	blocks, _ := fences(text)
	config := strings.Join(blocks[slices.IndexFunc(blocks, func(b fence) bool { return b.lang == "hcl consul.hcl" })].text, "\n")
	admin := regexp.MustCompile(`initial_management = "(.*)"`).FindStringSubmatch(config)
	net := netns.New(t, 3)
	server := consulserver.Start(t, consulserver.Options{Net: net, Config: config, Token: admin[1]})
	d := newDesk(t)
	d.must(os.Symlink(consul, filepath.Join(d.dir, "bin", "consul")))
	places := strings.NewReplacer("10.0.0.1:8500", server.HTTPAddr, "10.0.0.", "10.77.0.")
	typed := 0
	for _, b := range blocks {
		at, ok := strings.CutPrefix(b.lang, "console host")
		if !ok {
			continue
		}
		on := fmt.Sprintf("mkdir -p host%s; cd host%[1]s; PATH=%s/bin:$PATH MUSTER_AGENT_STATE_DIR=$PWD/state MUSTER_AGENT_WORK_DIR=$PWD/d1; "+
			"export PATH MUSTER_AGENT_STATE_DIR MUSTER_AGENT_WORK_DIR; ", at, d.dir)
		for _, l := range consoles("```console\n" + strings.Join(b.text, "\n") + "\n```") {
			typed++
			l.text = "ip netns exec " + net.Name(int(at[0]-'1')) + " sh -c " + quote(on+places.Replace(l.text))
			l.line += b.line - 2
			for i, quoted := range l.says {
				l.says[i] = places.Replace(quoted)
			}
			if strings.Contains(l.text, " muster agent ") {
				l.text += " &"
			}
			follows(t, d, name, "", l)
		}
		if typed == 5 { // scp
			d.types("for i in 2 3; do mkdir -p host$i; cp -p host1/d1.token host$i; done")
		}
	}
	if typed < 14 {
		t.Errorf("only %d lines", typed)
	}
}

// quote is a text as one word of the shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }
