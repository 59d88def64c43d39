package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// example is one block of the manual that spells out a package.
type example struct {
	line  int
	files map[string]string
}

// examples are the JSON blocks of a document that spell out a package, each split at its lines `// FILE`.
func examples(document string) []example {
	return slices.DeleteFunc(jsonBlocks(document), func(e example) bool { return e.files["metainfo.json"] == "" })
}

func jsonBlocks(document string) []example {
	var found []example
	blocks, _ := fences(document)
	for _, b := range blocks {
		if b.lang != "json" {
			continue
		}
		e := example{b.line, map[string]string{}}
		name := ""
		for _, line := range b.text {
			if to, ok := strings.CutPrefix(line, "// "); ok && path.Ext(to) == ".json" {
				name = to
				continue
			}
			e.files[name] += line + "\n"
		}
		found = append(found, e)
	}
	return found
}

// TestManualExamples lays each example out as printed, validates and plans it, and runs it with a program that says
// what it was told.
func TestManualExamples(t *testing.T) {
	python(t)
	all := examples(read(t, "doc/manual.md"))
	if len(all) == 0 {
		t.Fatal("the manual has no example")
	}
	for _, e := range all {
		t.Run(fmt.Sprintf("line %d", e.line), func(t *testing.T) {
			d := newDesk(t)
			for name, text := range e.files {
				d.write(path.Join("app", name), text)
			}
			d.write("app/package/files/train.py", train)
			if output, code := d.types("bin/muster validate app"); code != 0 || strings.Contains(output, "warning") {
				t.Fatalf("validate: exit code %d, want 0 and no warning\n%s", code, output)
			}
			planExample(t, d)
			output, code := d.types("bin/muster run app --app-id example")
			if code != 0 {
				t.Fatalf("run: exit code %d\n%s", code, output)
			}
			for _, told := range []string{
				`ps-0 … told {"cluster":{"ps":["127.0.0.1:…"],"worker":["127.0.0.1:…","127.0.0.1:…"]},"task":{"type":"ps","index":0}}`,
				`worker-1 … told {"cluster":{"ps":["127.0.0.1:…"],"worker":["127.0.0.1:…","127.0.0.1:…"]},"task":{"type":"worker","index":1}}`,
			} {
				if !says(output, told) {
					t.Errorf("run: nobody says %s in\n%s", told, output)
				}
			}
		})
	}
}

// train says what it was told. The workers end once the server has said it: it is stopped when they are done.
const train = `import json, os, time
print('told', os.environ['TF_CONFIG'], flush=True)
said = os.path.join(os.environ['MUSTER_CHECKPOINT_DIR'], 'said')
if json.loads(os.environ['TF_CONFIG'])['task']['type'] == 'ps':
    open(said, 'w').close()
    time.sleep(3600)
while not os.path.exists(said):
    time.sleep(0.01)
`

func planExample(t *testing.T, d desk) {
	t.Helper()
	output, code := d.types("bin/muster plan app --all --roster example 2>/dev/null")
	if code != 0 {
		t.Fatalf("plan: exit code %d\n%s", code, output)
	}
	var planned struct {
		Plans []struct {
			Who   struct{ Role string }
			Start struct{ Env map[string]string }
		}
	}
	if err := json.Unmarshal([]byte(output), &planned); err != nil {
		t.Fatalf("plan: %v\n%s", err, output)
	}
	roles := map[string]int{}
	for _, p := range planned.Plans {
		roles[p.Who.Role]++
		if p.Start.Env["TF_CONFIG"] == "" {
			t.Errorf("the start of a %s has no TF_CONFIG", p.Who.Role)
		}
	}
	if roles["ps"] != 1 || roles["worker"] != 2 {
		t.Errorf("planned %v, want a ps and two workers", roles)
	}
}

// TestManualAsTyped types the lines of the manual whose answers it quotes.
func TestManualAsTyped(t *testing.T) {
	python(t)
	lines := consoles(read(t, "doc/manual.md"))
	if len(lines) == 0 {
		t.Fatal("the manual has no line to type")
	}
	d := newDesk(t)
	d.smallest()
	for _, l := range lines {
		output, code := d.types("bin/" + l.text)
		if code != 0 {
			t.Fatalf("doc/manual.md:%d: %s: exit code %d\n%s", l.line, l.text, code, output)
		}
		for _, quoted := range l.says {
			if !says(output, quoted) {
				t.Errorf("doc/manual.md:%d: %s: does not say %q but\n%s", l.line, l.text, quoted, output)
			}
		}
	}
}

// policyField is the name of a field in the source of the operator's file.
var policyField = regexp.MustCompile("`json:\"(\\w+)\"`")

// TestManualPolicy gives the operator's manual's policy to muster, and looks for each field in it and in the table behind it.
func TestManualPolicy(t *testing.T) {
	const name = "/etc/muster/policy.json"
	manual := read(t, "doc/operator.md")
	all := jsonBlocks(manual)
	i := slices.IndexFunc(all, func(e example) bool { return e.files[name] != "" })
	if i < 0 {
		t.Fatal("doc/operator.md shows no policy")
	}
	text := all[i].files[name]
	fields := policyField.FindAllStringSubmatch(read(t, "shim/policy/policy.go")+read(t, "shim/policy/packages.go")+read(t, "shim/policy/history.go"), -1)
	if len(fields) < 11 {
		t.Fatalf("found only the fields %v in shim/policy", fields)
	}
	for _, f := range fields {
		if !strings.Contains(text, `"`+f[1]+`"`) || !strings.Contains(manual, "`"+f[1]+"`") {
			t.Errorf("doc/operator.md does not show and tell of %s", f[1])
		}
	}
	d := newDesk(t)
	if output, code := d.types("bin/muster package keygen release --no-password"); code != 0 {
		t.Fatal(output)
	}
	for _, path := range []string{"/etc/muster/release.pub", "/data/sets", "/data/results", "/scratch"} {
		own := filepath.Join(d.dir, filepath.Base(path))
		if filepath.Ext(path) == "" {
			if err := os.Mkdir(own, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		text = strings.ReplaceAll(text, path, own)
	}
	text = strings.Replace(text, `"apparmor": "docker-default"`, `"apparmor": ""`, 1) // this host need not have AppArmor
	text = strings.Replace(text, `"alice"`, `"nobody"`, 1)
	d.write("policy.json", text)
	output, code := d.types("bin/muster doctor --policy policy.json")
	if code != 0 || !says(output, "ok … policy.json: userns private; refuse_root true; mounts … (read-only), … at /mnt; roots …/results; users nobody, 1000-59999; groups video; secret_env SITE_*; secret_keyring site-*; secret_files /run/credentials/muster.service/*; ulimits rtprio; seccomp default with perf_event_open without ptrace; capabilities NET_RAW; ssh false; insecure_registries registry.lab:5000; history in hdfs://nn/history, logs failed, for 90d, up to 50GiB; packages signed by 1 key") {
		t.Errorf("doctor: exit code %d\n%s", code, output)
	}
}
