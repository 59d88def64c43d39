package seeds

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
	"github.com/muster-agent/muster/shim/publisher"
	"github.com/muster-agent/muster/shim/status"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var born = time.Date(2026, 11, 21, 10, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return born.Add(time.Duration(seconds) * time.Second) }

// training is an app of a parameter server with a board and two workers, in its second generation: worker-1 has failed
// once. over: worker-1 has failed for good.
func training(t *testing.T, over bool) App {
	t.Helper()
	ps := appdef.Component{
		Name: "ps", Instances: 1, Limits: appdef.Limits{MemoryMB: 1536, VCores: 1},
		Settings:    appdef.ComponentSettings{Role: appdef.RolePS},
		CompExports: []appdef.ExportRef{{Group: "ps", Name: "host_port"}, {Group: "ps", Name: "board"}},
	}
	worker := appdef.Component{
		Name: "worker", Instances: 2, Limits: appdef.Limits{MemoryMB: 4096, VCores: 2, GPUs: 1},
		Settings: appdef.ComponentSettings{Role: appdef.RoleWorker, Command: "python train.py"},
	}
	def := appdef.App{
		Name: "mnist", Dialect: "slider", Components: []appdef.Component{ps, worker},
		ExportGroups: []appdef.ExportGroup{{Name: "ps", Exports: []appdef.Export{
			{Name: "host_port", Value: "${ps_HOST}:${site.global.ps.port}"}, {Name: "board", Value: "http://${ps_HOST}:${site.side.board}"},
		}}},
		Settings: appdef.AppSettings{Framework: "tensorflow", HBox: appdef.HBox{Type: "TENSORFLOW"}},
	}
	text, err := appdef.Encode(def)
	if err != nil {
		t.Fatal(err)
	}
	member := func(component string, index int, host string) consul.MemberStatus {
		m := consul.MemberStatus{Instance: registry.Instance{Component: component, Index: index}, Live: true}
		m.Run, m.Addr, m.Phase, m.Gen, m.Attempt, m.Since = "r1", host, registry.PhaseReady, 2, 2, at(30)
		m.ContainerID = "container_17_0001_01_00000" + string(rune('1'+len(component)+index))
		return m
	}
	server, w0, w1 := member("ps", 0, "10.0.0.1"), member("worker", 0, "10.0.0.2"), member("worker", 1, "10.0.0.3")
	server.Exports = map[string]string{"ps.host_port": "10.0.0.1:20001", "ps.board": "http://10.0.0.1:20002"}
	server.Ports = map[string]int{"global.ps.port": 20001, "side.board": 20002}
	w0.Ports = map[string]int{"port.http": 20003, "port.http-2": 20004, "port.http-10": 20005, "port.ssh": 20022}
	st := &consul.Status{
		ID: "mnist-1", Live: 3, Conductor: "ps-0", Members: []consul.MemberStatus{server, w0, w1},
		App:       registry.AppRecord{Run: "r1", Def: text, Counts: map[string]int{"ps": 1, "worker": 2}, Created: born},
		Directive: registry.Directive{Act: registry.ActRun, Gen: 2, Run: "r1", At: at(20)},
	}
	f := apps.Facts{ID: "mnist-1", Owner: "ada", Registry: st, States: map[string]status.State{}}
	failedWorker := status.Instance{
		Version: 1, Identity: status.Identity{Instance: "worker-1", Component: "worker", Index: 1, Rank: 2, Role: "worker"},
		Phase: "backoff", Since: at(40), Location: status.Location{Host: "10.0.0.3"},
		Starts: status.Starts{Generation: 2, Attempt: 2, Restarts: 1, Failures: 1}, Advance: status.Advance{Progress: new(0.25)},
		End: status.End{Exit: new(3), ExitInfo: &status.Exit{Code: new(3), At: at(40), LastOutput: "KeyError: 'x'"}},
	}
	if over {
		v := &registry.Verdict{
			Version: 1, Run: "r1", Outcome: registry.Failed, Cause: "worker-1 exited with code 3", First: "worker-1", Gen: 2, At: at(41),
		}
		st.Verdict, st.Directive.Verdict, st.Directive.Act, st.Live, st.Conductor = v, v, registry.ActStop, 0, ""
		for i := range st.Members {
			m := &st.Members[i]
			m.Live, m.Phase, m.Exit = false, registry.PhaseEnded, &registry.MemberExit{Gen: 2, Signal: 15, At: at(43)}
		}
		st.Members[2].Phase, st.Members[2].Exit = registry.PhaseFailed, &registry.MemberExit{Gen: 2, Code: new(3), At: at(40)}
		failedWorker.Phase = "done"
		failedWorker.PAI = &status.PAI{Code: 3, Phrase: "User App Issue", Type: "USER_FAILURE", Reaction: "NEVER_RETRY"}
	}
	f.Peers = map[string]status.State{"worker-1": {Instance: failedWorker}}
	return Of(f)
}

// What each route answers of an app that runs and of one that has failed.
func TestGolden(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer func(a App) any
	}{
		{"hbox_app", func(a App) any { return a.HBox() }},
		{"hbox_containers", func(a App) any { return a.HBoxContainers() }},
		{"hbox_container", func(a App) any {
			row, _ := a.Instance("container_17_0001_01_000003")
			return a.HBoxContainer(row)
		}},
		{"hbox_texts", func(a App) any {
			first, _ := a.FirstRunning()
			return map[string]string{"evaluator": a.Evaluator(), "boardUrl": a.BoardURL(), "signalled": first}
		}},
		{"pai_jobs", func(a App) any { return PAIList([]App{a}, "") }},
		{"pai_job", func(a App) any { return a.PAI("http://127.0.0.1:8080") }},
		{"pai_config", func(a App) any {
			text, _ := a.PAIConfig()
			return json.RawMessage(text)
		}},
		{"pai_ssh", func(a App) any {
			s, _ := a.PAISSH()
			return s
		}},
		{"slider_exports", func(a App) any { return slider(t, a, "publisher", "exports") }},
		{"slider_components", func(a App) any { return slider(t, a, "application", "live", "components") }},
	} {
		for _, over := range []bool{false, true} {
			name := tt.name
			if over {
				name += "_over"
			}
			t.Run(name, func(t *testing.T) { golden(t, name, tt.answer(training(t, over))) })
		}
	}
}

func slider(t *testing.T, a App, path ...string) json.RawMessage {
	t.Helper()
	text, err := publisher.Get(a.Slider(), path...)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func golden(t *testing.T, name string, value any) {
	t.Helper()
	got, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

// An app whose registry has gone still has its instances, and no answer of what was asked for.
func TestWithoutDefinition(t *testing.T) {
	a := Of(apps.Facts{ID: "d1"})
	if _, ok := a.PAIConfig(); ok || a.Defined() {
		t.Error("a definition from nowhere")
	}
	if _, ok := a.PAISSH(); ok {
		t.Error("a login from nowhere")
	}
	if got := len(a.HBoxContainers().(hboxContainers).All); got != 0 {
		t.Errorf("%d containers from nowhere", got)
	}
}

func TestListOfOneUser(t *testing.T) {
	if got := paiList([]App{training(t, false)}, "bob"); len(got) != 0 {
		t.Errorf("jobs of bob: %+v", got)
	}
	if got := paiList([]App{training(t, false)}, "ada"); len(got) != 1 {
		t.Errorf("jobs of ada: %+v", got)
	}
}

func TestGigabytes(t *testing.T) {
	for mb, want := range map[int]string{0: "0.0 GB", 1024: "1.0 GB", 1536: "1.5 GB", 100: "0.09765625 GB", appdef.Max: "0.0 GB"} {
		if got := gigabytes(mb); got != want {
			t.Errorf("%d MB: %s, want %s", mb, got, want)
		}
	}
}

// Values whose names say that they are secret are hidden from who may look.
func TestHide(t *testing.T) {
	def := appdef.App{Components: []appdef.Component{{
		Name: "worker", Instances: 1, Config: map[string]string{"muster.env.DB_PASSWORD": "hunter22", "site.global.lr": "0.001"},
		Settings: appdef.ComponentSettings{Env: map[string]string{"API_TOKEN": `swordfish "1"`}},
	}}}
	text, err := appdef.Encode(def)
	if err != nil {
		t.Fatal(err)
	}
	a := Of(apps.Facts{ID: "d1", Registry: &consul.Status{ID: "d1", App: registry.AppRecord{Def: text}}})
	got := a.Hide(`{"password": "hunter22", "token": "swordfish \"1\"", "lr": "0.001"}`)
	if strings.Contains(got, "hunter22") || strings.Contains(got, "swordfish") || !strings.Contains(got, "0.001") {
		t.Errorf("got %s", got)
	}
}

// The key of a board stands in its URL for who asked for that alone, while the run lasts, and never in the record itself.
func TestKeyOfABoard(t *testing.T) {
	const plain = "http://10.0.0.1:20002"
	for _, over := range []bool{false, true} {
		a := training(t, over)
		a.facts.Registry.App.Token = "run's token"
		exports := a.facts.Registry.Members[0].Exports
		a.facts.Registry.Members[0].Ports["side.board.inner"] = 20009
		a = Of(a.facts)
		if got := a.BoardURL(); got != plain && !over {
			t.Errorf("not asked for: got %s, want %s", got, plain)
		}
		a.ShowKeys()
		if got := a.BoardURL(); strings.HasPrefix(got, plain+"/?token=") == over {
			t.Errorf("over %t: got %s", over, got)
		}
		if exports["ps.board"] != plain {
			t.Errorf("the record has %v", exports)
		}
	}
}
