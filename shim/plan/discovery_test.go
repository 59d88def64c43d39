package plan

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
)

// byName is the training app with muster.address=dns.
func byName(framework string) appdef.App {
	app := trainingApp()
	app.Settings.Address, app.Settings.Framework = appdef.AddressDNS, framework
	return app
}

func TestDiscovery(t *testing.T) {
	nameless := request("ps", 0)
	nameless.AppID = ""
	elsewhere, without := request("ps", 1), request("ps", 1)
	elsewhere.Domain, without.NoDNS = "lab.example", true
	for _, tt := range []struct {
		name string
		app  appdef.App
		req  Request
		want *Discovery
	}{
		{"by the host", trainingApp(), request("ps", 1), &Discovery{Service: "d1-ps", Tag: "ps-1"}},
		{"a service", trainingApp(), request("tensorboard", 0), &Discovery{Service: "d1-tensorboard", Tag: "tensorboard-0"}},
		{"by name", byName("tensorflow"), request("ps", 1), &Discovery{Service: "d1-ps", Tag: "ps-1", Address: "ps-1.d1-ps.service.consul"}},
		{"in another domain", byName("tensorflow"), elsewhere, &Discovery{Service: "d1-ps", Tag: "ps-1", Address: "ps-1.d1-ps.service.lab.example"}},
		{"where nothing answers DNS", byName("tensorflow"), without, &Discovery{Service: "d1-ps", Tag: "ps-1"}},
		{"an app without a name", byName("tensorflow"), nameless, nil},
		{"nothing exported", with(trainingApp(), "worker", func(c *appdef.Component) { c.CompExports = nil }), request("worker", 0), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := mustBuild(t, tt.app, tt.req)
			if diff := cmp.Diff(p.Discovery, tt.want); diff != "" {
				t.Errorf("(-got +want):\n%s", diff)
			}
		})
	}
}

func TestPublishByName(t *testing.T) {
	p := mustBuild(t, byName("tensorflow"), request("ps", 1))
	exports, address := Publish(p, "fd00::7", map[string]int{"global.ps.port": 2001})
	if want := "ps-1.d1-ps.service.consul:2001"; address != want {
		t.Errorf("address: got %q, want %q", address, want)
	}
	if got, want := exports["ps.host_port"], "[fd00::7]:2001"; got != want {
		t.Errorf("what people read: got %q, want %q", got, want)
	}
	r := ExampleRoster(byName("tensorflow"), request("ps", 0))
	if got, want := r.Rows[0].Addr, "ps-0.d1-ps.service.consul:20000"; got != want {
		t.Errorf("example: got %q, want %q", got, want)
	}
}

// TestResolving: a framework that cannot work with names is refused, one that asks once is warned of.
func TestResolving(t *testing.T) {
	for framework, want := range map[string]string{
		"tensorflow": "", "tensor2tensor": "", "none": "",
		"pytorch": "warning", "jax": "warning", "mxnet": "warning", "xgboost": "warning", "horovod-gloo": "warning", "xflow": "warning", "xdl": "warning",
		"lightgbm": "problem", "lightlda": "problem", "mpi": "problem", "horovod": "problem", "cntk": "problem",
	} {
		p, problems := Build(byName(framework), request("ps", 0))
		got := ""
		for _, one := range p.Warnings {
			if strings.HasPrefix(one.Got, "dns with ") {
				got = "warning"
			}
		}
		for _, one := range problems {
			if strings.HasPrefix(one.Got, "dns with ") {
				got = "problem"
			}
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", framework, got, want)
		}
	}
	for _, name := range appdef.Frameworks() {
		_, refused := wantAddresses[name]
		once := false
		for _, one := range resolveOnce {
			once = once || one == name
		}
		if again := name == "tensorflow" || name == "tensor2tensor" || name == "none"; !refused && !once && !again || refused && once {
			t.Errorf("nobody has said what %s makes of names", name)
		}
	}
}

func TestEndpoints(t *testing.T) {
	ports := map[string]int{"global.ps.port": 2001, "global.board": 6006}
	app := with(trainingApp(), "ps", func(c *appdef.Component) {
		c.ComponentExports = []appdef.Export{
			{Name: "again", Value: "${THIS_HOST}:${site.global.ps.port}"},
			{Name: "alone", Value: "${site.global.ps.port}"},
			{Name: "fixed", Value: "${THIS_HOST}:8080,${THIS_HOST}:99999"},
			{Name: "no_port", Value: "${THIS_HOST}"},
		}
	})
	p := mustBuild(t, app, request("ps", 0))
	want := []Endpoint{
		{
			Port: 2001, Member: true, Exports: []string{"ps.host_port", "ComponentInstanceData.again", "ComponentInstanceData.alone"},
			Values: []string{"[fd00::7]:2001", "[fd00::7]:2001", "2001"},
		},
		{Port: 8080, Exports: []string{"ComponentInstanceData.fixed"}, Values: []string{"[fd00::7]:8080,[fd00::7]:99999"}},
	}
	if diff := cmp.Diff(Endpoints(p, "fd00::7", ports), want); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	board := mustBuild(t, trainingApp(), request("tensorboard", 0))
	got := Endpoints(board, "h", ports)
	if len(got) != 1 || !got[0].Member || got[0].Port != 6006 {
		t.Errorf("of a service: got %+v", got)
	}
	if got := Endpoints(board, "h", nil); len(got) != 0 {
		t.Errorf("before the ports are claimed: got %+v", got)
	}
}
