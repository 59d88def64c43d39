package metrics

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	diff "github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/shim/journal/timeline"
	"github.com/muster-agent/muster/shim/samples"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/tests/servers/promtool"
)

var update = flag.Bool("update", false, "rewrite golden files")

var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// busy is an instance of which everything is known.
func busy() Instance {
	i := Instance{
		State:   status.State{App: "d1", Run: "7"},
		Silence: status.Silence{Silence: 1.5, Fenced: true}, Running: true, Limits: samples.Limits{Memory: 4 << 30, Cores: 2},
		Use: samples.Reading{Memory: 3 << 30, CPU: 90 * time.Second, GPUs: []samples.GPU{
			{ID: "GPU-a", Use: 97, Memory: 1 << 30, Total: 80 << 30}, {ID: "GPU-b", Use: -1, Memory: -1, Total: -1},
		}},
		Spent: new(timeline.Of(nil, now)), Counts: Counts{OOM: 1, RegistryErrors: 4}, CheckpointAt: now.Add(-time.Minute),
	}
	i.Identity = status.Identity{Instance: "worker-3", Component: "worker", Index: 3}
	i.Phase, i.Generation, i.Attempt, i.Restarts, i.Failures = "running", 2, 3, 2, 1
	i.Progress, i.CheckpointStep, i.NoOutputSince = new(0.25), new(int64(400)), new(now.Add(-time.Hour))
	for n, seconds := range []float64{0, 12.5, 3, 600} {
		i.Spent.Spent[timeline.Kinds()[n]] = seconds
	}
	i.Warnings = []status.Warning{{Kind: "silence"}}
	return i
}

func text(t *testing.T, s *Set) string {
	t.Helper()
	var b strings.Builder
	if err := s.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// everything is a text in which each metric occurs.
func everything(t *testing.T) string {
	var s Set
	s.AddInstance(busy(), now)
	s.AddApp(App{App: "d1", Phase: "running", Live: 3, Unreachable: 1, Started: &now})
	return text(t, &s)
}

func TestText(t *testing.T) {
	got := everything(t)
	const file = "testdata/everything.prom"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(string(want), got); d != "" {
		t.Errorf("%s: -want +got\n%s", file, d)
	}
	for _, k := range kinds() {
		if !strings.Contains(got, "\n"+k.Name+"{") {
			t.Errorf("%s is not in the text of everything", k.Name)
		}
	}
}

// What is not known has no value: a limit that is not there is not 0.
func TestUnknown(t *testing.T) {
	var s Set
	s.AddInstance(Instance{State: status.State{App: "d1"}, Use: samples.Reading{Memory: 7}}, now)
	for _, k := range []kind{memory, memoryLimit, cpu, cpuLimit, gpuUse, progress, step, stepAge, noOutput, spent} {
		if got := text(t, &s); strings.Contains(got, k.Name+"{") {
			t.Errorf("%s is told:\n%s", k.Name, got)
		}
	}
}

// The answer of an agent stands for its own instance, whatever it says.
func TestRead(t *testing.T) {
	in := status.Identity{Instance: "worker-0", Component: "worker"}
	mine := `{app="d1",component="worker",index="0"`
	for _, tt := range []struct{ name, text, want string }{
		{"its own", `muster_attempt{app="d1",component="worker",index="0"} 2`, "muster_attempt" + mine + "} 2\n"},
		{"of another app", `muster_attempt{app="d2",component="ps",index="9",run="x"} 2 1234`, "muster_attempt" + mine + "} 2\n"},
		{"a label of its kind", `muster_gpu_use_ratio{gpu="G\"1\\",x="y"} 0.5`, "muster_gpu_use_ratio" + mine + `,gpu="G\"1\\"} 0.5` + "\n"},
		{"twice the same", "muster_attempt 1\nmuster_attempt{a=\"b\"} 2", "muster_attempt" + mine + "} 1\n"},
		{"metrics of others", "up 1\nmuster_app_live_instances{app=\"d2\"} 4", ""},
		{"another type", "muster_generation 1", ""}, // untyped
		{"nothing", "", ""},
	} {
		var s Set
		if err := s.Read(strings.NewReader(strings.Replace(tt.text, "muster_", "# TYPE muster_attempt gauge\n# TYPE muster_gpu_use_ratio gauge\nmuster_", 1)+"\n"), "d1", in); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		var values strings.Builder
		for line := range strings.Lines(text(t, &s)) {
			if line[0] != '#' {
				values.WriteString(line)
			}
		}
		if values.String() != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, &values, tt.want)
		}
	}
	var s Set
	if err := s.Read(strings.NewReader("muster_attempt{ 1\n"), "d1", in); err == nil || !strings.Contains(err.Error(), "metrics of d1/worker-0: ") {
		t.Errorf("no metrics: %v", err)
	}
}

// What an agent writes, another one's reader takes whole.
func TestReadIsTheInverse(t *testing.T) {
	var a, b Set
	a.AddInstance(busy(), now)
	whole := text(t, &a)
	if err := b.Read(strings.NewReader(whole), "d1", busy().Identity); err != nil {
		t.Fatal(err)
	}
	if d := diff.Diff(whole, text(t, &b)); d != "" {
		t.Error(d)
	}
}

// metricName is a metric as documents, dashboards and rules name it.
var metricName = regexp.MustCompile(`\bmuster_[a-z0-9_]+\b`)

// What the dashboard and the alerts name is a metric, and the manual has a row for each.
func TestDocuments(t *testing.T) {
	known := map[string]bool{}
	for _, k := range kinds() {
		known[k.Name] = true
	}
	for _, file := range []string{"grafana/muster.json", "prometheus/alerts.yml", "metrics.md"} {
		have, err := os.ReadFile(filepath.Join("../../doc", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range metricName.FindAllString(string(have), -1) {
			if !known[name] {
				t.Errorf("doc/%s names %s, which is no metric", file, name)
			}
		}
	}
	const file, begin, end = "../../doc/metrics.md", "<!-- table metrics, printed by the program -->\n", "<!-- end of metrics -->"
	have, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(have), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no table between %q and %q", file, begin, end)
	}
	want := before + begin + rows() + end + after
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := diff.Diff(string(have), want); d != "" {
		t.Errorf("%s (go test ./shim/metrics -update): -have +want\n%s", file, d)
	}
}

// rows is the manual's table.
func rows() string {
	var b strings.Builder
	b.WriteString("\n| metric | type | label | what |\n|---|---|---|---|\n")
	for _, k := range kinds() {
		sort := "gauge"
		if k.Counter {
			sort = "counter"
		}
		labels := "app, component, index"
		if k.OfApp {
			labels = "app"
		}
		if k.Label != "" {
			labels += ", " + k.Label
		}
		b.WriteString("| `" + k.Name + "` | " + sort + " | " + labels + " | " + k.Help + " |\n")
	}
	return b.String() + "\n"
}

// Prometheus' own tool finds nothing to say against the text, and the alerts fire as their tests want.
func TestPromtool(t *testing.T) {
	if out := promtool.Run(t, "", strings.NewReader(everything(t)), "check", "metrics"); out != "" {
		t.Error(out)
	}
	promtool.Run(t, "../../doc/prometheus", nil, "check", "rules", "alerts.yml")
	promtool.Run(t, "../../doc/prometheus", nil, "test", "rules", "alerts_test.yml")
}
