package render_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/zclconf/go-cty/cty"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/slider"
	"github.com/muster-agent/muster/packages/catalog"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/launcher/known"
	"github.com/muster-agent/muster/shim/render"
)

// hostile are values that some shell, format or launcher would read otherwise than they stand.
var hostile = []string{
	"", " ", "a b", "'", `"`, `\`, "$", "%", "$HOME", "${HOME}", "$(HOME)", "`id`", "${NOMAD_TASK_DIR}", "${node.class}", "%{if x}", "%i %% %", "$$", "$${HOME}",
	"{{checkpoint}}", "{{{", "}}}", "{{{{HOME}}}}", "<LOG_DIR>", "<CPS>", "<ADD_OPENS>", "<<LOG_DIR>LOG_DIR>", "${USER}", "${${USER}}", "'${USER}'", "{'{HOME}'}",
	"a\nb", "\n", "a\tb", "\r\n", "\x01\x7f", "trailing\\", "-", "--", "-c", ";", "#", "# no", "!", "~", "*", "[a]", "a;b&&c|d>e<f", "&",
	"true", "null", "1e3", "0x1f", "~", "- a", "a: b", "é ☃ 😀", "\u2028", "\u0085", "@file", "+x", ":x", "EOF", "\\n", `\x41`, "\"quoted\"", "=", "<<EOF\nx\nEOF", "/* */", "//", "${", "%{", "$$$",
	"a\ufeffb", "\u200b", " leading", "trailing ", "multi\n line \n\n end\n",
}

// small is an app of two components of one size.
func small(t testing.TB) appdef.App {
	t.Helper()
	files, err := catalog.Open("handwriting")
	if err != nil {
		t.Fatal(err)
	}
	app, problems := slider.Load(files, slider.Options{Instances: []string{"worker=2"}})
	if bad := problems.Errors(); len(bad) > 0 {
		t.Fatal(bad)
	}
	return app
}

func options() render.Options {
	return render.Options{
		AppID: "hand", Run: "1700000000", App: "hdfs://nn/apps/hand.zip", Binary: "/usr/local/bin/muster", Registry: registry.DefaultAddress(), Image: "registry.example/muster:1",
	}
}

// rendered is the first file of a job.
func rendered(t testing.TB, launcher, format string, app appdef.App, o render.Options) string {
	t.Helper()
	o.Format = format
	job, err := known.Render(launcher, app, o)
	if err != nil {
		t.Fatal(err)
	}
	return job.Files[0].Text
}

// readers are the formats whose words can be had without another program.
var readers = []struct {
	launcher, format string
	read             func(string) ([][]string, error)
}{
	{"nomad", "hcl", hclWords},
	{"nomad", "json", apiWords},
	{"systemd", "", unitWords},
	{"k8s", "jobset", podWords},
	{"k8s", "jobs", podWords},
	{"yarn", "service", func(text string) ([][]string, error) {
		var all [][]string
		commands, err := launchCommands(text)
		for _, command := range commands {
			words, err := launched(command)
			if err != nil {
				return nil, err
			}
			all = append(all, words)
		}
		return all, err
	}},
}

// checkWords holds that the words which an agent is started with end in those of Options, as they were given.
func checkWords(t *testing.T, app appdef.App, words []string) {
	o := options()
	o.AppFlags = words
	for _, r := range readers {
		if r.launcher == "nomad" && slices.ContainsFunc(words, changedByNomad) {
			if _, err := known.Render(r.launcher, app, o); err == nil {
				t.Errorf("Nomad takes %q, which it would change", words)
			}
			continue
		}
		text := rendered(t, r.launcher, r.format, app, o)
		all, err := r.read(text)
		if err != nil {
			t.Fatalf("%s %s: %v\n%s", r.launcher, r.format, err, text)
		}
		if len(all) == 0 {
			t.Fatalf("%s %s: no command in\n%s", r.launcher, r.format, text)
		}
		for _, got := range all {
			at := slices.Index(got, "app-error=93,out-of-memory=93") + 1
			if at == 0 || len(got) < at+len(words) {
				t.Fatalf("%s %s: got %q", r.launcher, r.format, got)
			}
			if d := cmp.Diff(words, got[at:at+len(words)]); d != "" {
				t.Fatalf("%s %s: -given +read\n%s\n%s", r.launcher, r.format, d, text)
			}
		}
	}
}

// changedByNomad tells of words that HCL does not keep as they are: it composes characters, and takes a mark at the beginning
// for one of the byte order.
func changedByNomad(word string) bool {
	return strings.HasPrefix(word, "\ufeff") || cty.StringVal(word).AsString() != word
}

func TestWordsThatNomadChanges(t *testing.T) {
	for _, word := range []string{"\ufeffx", "e\u0301", "\u212b"} {
		checkWords(t, small(t), []string{word})
		if !changedByNomad(word) {
			t.Errorf("%q would pass", word)
		}
	}
}

func TestHostileWords(t *testing.T) {
	checkWords(t, small(t), hostile)
}

func FuzzWords(f *testing.F) {
	for _, word := range hostile {
		f.Add(word, "x")
	}
	app := small(f)
	f.Fuzz(func(t *testing.T, one, two string) {
		o := options()
		o.AppFlags = []string{one, two}
		if !utf8.ValidString(one) || !utf8.ValidString(two) || strings.ContainsRune(one+two, 0) { // two halves of a letter are none
			if job, err := known.Render("nomad", app, o); err == nil && !utf8.ValidString(job.Files[0].Text) {
				t.Error("a job file that is no UTF-8")
			}
			return
		}
		checkWords(t, app, o.AppFlags)
	})
}

// spy is a program that writes its name and the words that it is started with, each with a zero byte behind it, to $SPY, says
// $SPY_SAYS and ends with $SPY_CODE.
const spy = "#!/bin/bash\nprintf '%s\\0' \"${0##*/}\" \"$@\" >>\"$SPY\"\necho \"$SPY_SAYS\"\nexit \"${SPY_CODE:-0}\"\n"

// typed runs a script by bash with spies in place of the programs, and gives the words that they were started with.
func typed(t *testing.T, script string, spies []string, environ ...string) ([]string, error) {
	t.Helper()
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	for _, name := range spies {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(spy), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "bash")
	cmd.Stdin = strings.NewReader(script)
	cmd.Env = append([]string{"PATH=" + dir + ":" + os.Getenv("PATH"), "SPY=" + said, "HOME=/filled", "USER=filled"}, environ...)
	out, runs := cmd.CombinedOutput()
	if len(out) > 0 {
		t.Logf("bash: %s", out)
	}
	text, err := os.ReadFile(said)
	if err != nil {
		t.Fatalf("%v\n%s", err, script)
	}
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00"), runs
}

// TestClientsOfHadoopHome: what HADOOP_HOME names has the clients that are called, whatever the PATH has.
func TestClientsOfHadoopHome(t *testing.T) {
	home := t.TempDir()
	bin, jars := filepath.Join(home, "bin"), filepath.Join(home, "share/hadoop/yarn")
	jar := filepath.Join(jars, "hadoop-yarn-applications-distributedshell-3.4.1.jar")
	if err := errors.Join(os.Mkdir(bin, 0o755), os.MkdirAll(jars, 0o755), os.WriteFile(jar, nil, 0o600), os.WriteFile(filepath.Join(bin, "yarn"), []byte(spy), 0o755)); err != nil {
		t.Fatal(err)
	}
	words, err := typed(t, rendered(t, "yarn", "shell", small(t), options()), nil, "HADOOP_HOME="+home)
	if err != nil || !slices.Contains(words, jar) {
		t.Errorf("got %q, %v", words, err)
	}
}

// TestHostileWordsInShells has bash itself read what is for bash.
func TestHostileWordsInShells(t *testing.T) {
	o := options()
	o.AppFlags = hostile
	want := func(got []string) {
		t.Helper()
		at := slices.Index(got, "app-error=93,out-of-memory=93") + 1
		if at == 0 || len(got) < at+len(hostile) {
			t.Fatalf("got %q", got)
		}
		if d := cmp.Diff(hostile, got[at:at+len(hostile)]); d != "" {
			t.Errorf("-given +read\n%s", d)
		}
	}
	got, err := typed(t, rendered(t, "slurm", "", small(t), o), []string{"srun", "scontrol", "squeue"})
	if err != nil {
		t.Error(err)
	}
	want(got)

	// As a NodeManager has it: between double quotes of one shell, by another.
	o.Binary = "/spy/muster"
	commands, err := launchCommands(rendered(t, "yarn", "service", small(t), o))
	if err != nil {
		t.Fatal(err)
	}
	launch := func(command string) []string {
		t.Helper()
		command = strings.Replace(nodeManager(command), "/spy/muster", "muster", 1)
		words, err := typed(t, "exec /bin/bash -c \""+command+"\"\n", []string{"muster"})
		if err != nil {
			t.Error(err)
		}
		return words
	}
	want(launch(commands[0]))

	// The distributed shell: a script that is typed, whose client hands the command on.
	client, err := typed(t, rendered(t, "yarn", "shell", small(t), o), []string{"yarn"}, "DISTRIBUTED_SHELL_JAR=/d.jar")
	if err != nil {
		t.Error(err)
	}
	at := slices.Index(client, "-shell_command") + 1
	if at == 0 || at != len(client)-1 {
		t.Fatalf("got %q", client)
	}
	want(launch(client[at]))
}

// renderError is why a job cannot be rendered.
func renderError(launcher string, app appdef.App, o render.Options) error {
	_, err := known.Render(launcher, app, o)
	return err
}
