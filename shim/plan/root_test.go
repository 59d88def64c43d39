package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
)

func inContainer() Request {
	r := request("ps", 0)
	r.Engine = EngineChoice{Name: "container", Why: "root and a writable cgroup"}
	return r
}

func TestRoot(t *testing.T) {
	for _, tt := range []struct {
		name   string
		engine string
		limits appdef.Limits
		want   Root
	}{
		{"no container", "cgroup", appdef.Limits{Root: appdef.RootOverlay}, Root{Kind: RootHost}},
		{"the host's", "container", appdef.Limits{}, Root{Kind: RootReadOnly}},
		{"the host's with writes", "container", appdef.Limits{Root: appdef.RootOverlay}, Root{Kind: RootOverlay}},
		{"an image", "container", appdef.Limits{Image: "py:3", ImageAuth: "file:/a"}, Root{Kind: RootImage, Image: "py:3", Auth: "file:/a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			req := inContainer()
			req.Engine.Name = tt.engine
			p := mustBuild(t, with(trainingApp(), "ps", func(c *appdef.Component) {
				c.Limits.Image, c.Limits.ImageAuth, c.Limits.Root = tt.limits.Image, tt.limits.ImageAuth, tt.limits.Root
			}), req)
			if diff := cmp.Diff(p.Root, tt.want); diff != "" {
				t.Errorf("root (-got +want):\n%s", diff)
			}
		})
	}
}

func TestImageNeedsAContainer(t *testing.T) {
	req := inContainer()
	req.Engine = EngineChoice{Name: "process", Why: "not root"}
	_, problems := Build(with(trainingApp(), "ps", func(c *appdef.Component) { c.Limits.Image = "py:3" }), req)
	bad := problems.Errors()
	if len(bad) != 1 || !bad[0].Forbidden || !strings.Contains(bad[0].String(), "not root") {
		t.Errorf("problems = %v, want one that the host does not permit, with the reason", bad)
	}
}

func TestImageStartsAsDockerDoes(t *testing.T) {
	image := ImageFacts{
		Digest: "sha256:1", Entrypoint: []string{"/entry", "-x"}, Cmd: []string{"serve"}, Env: []string{"PATH=/opt/bin", "A=1", "MUSTER_X=no"},
		WorkDir: "/srv", User: "ann",
	}
	for _, tt := range []struct {
		name  string
		image func(*ImageFacts)
		app   func(*appdef.Component)
		argv  []string
		cwd   string
	}{
		{"command behind the entrypoint", nil, func(c *appdef.Component) { c.Settings.Command = "run" }, []string{"/entry", "-x", "sh", "-c", "run"}, "/srv"},
		{"its own command", nil, nil, []string{"/entry", "-x", "serve"}, "/srv"},
		{"bash where it is", func(i *ImageFacts) { i.Bash, i.Entrypoint, i.WorkDir = true, nil, "/" }, func(c *appdef.Component) { c.Settings.Command = "run" }, []string{"bash", "-c", "run"}, "${WORK}/ps-0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			facts := image
			if tt.image != nil {
				tt.image(&facts)
			}
			req := inContainer()
			req.Inherited = map[string]string{"LANG": "C"}
			req.Image, req.User = &facts, &UserFacts{Name: "ann", UID: 7, GID: 8, Home: "/home/ann"}
			p := mustBuild(t, with(trainingApp(), "ps", func(c *appdef.Component) {
				c.Limits.Image, c.Settings.Command, c.CommandScript = "py:3", "", nil
				c.Settings.Env = map[string]string{"A": "2"}
				if tt.app != nil {
					tt.app(c)
				}
			}), req)
			if !slices.Equal(p.Process.Argv, tt.argv) || p.Process.Cwd != tt.cwd || p.Process.Folder != "${WORK}/ps-0" {
				t.Errorf("argv %q in %s, want %q in %s", p.Process.Argv, p.Process.Cwd, tt.argv, tt.cwd)
			}
			start, _ := Finish(p, ExampleRoster(trainingApp(), req), StartFacts{}, noFramework)
			want := map[string]string{"PATH": "/opt/bin", "A": "2", "LANG": "C", "HOME": "/home/ann", "USER": "ann", "MUSTER_X": ""}
			for name, value := range want {
				if start.Env[name] != value {
					t.Errorf("%s=%q, want %q", name, start.Env[name], value)
				}
			}
			if p.Process.User != "ann" || p.Root.Digest != "sha256:1" {
				t.Errorf("user %q, digest %q, want the image's", p.Process.User, p.Root.Digest)
			}
		})
	}
}

func TestImageWithNothingToRun(t *testing.T) {
	req := inContainer()
	req.Image = &ImageFacts{Digest: "sha256:1"}
	_, problems := Build(with(trainingApp(), "ps", func(c *appdef.Component) {
		c.Limits.Image, c.Settings.Command, c.CommandScript = "py:3", "", nil
	}), req)
	if !strings.Contains(problems.Error(), "neither entrypoint nor command") {
		t.Errorf("problems = %v", problems)
	}
}

// A process is root of the host where its agent is, has no ids of its own, and sees the host's files.
func TestRootOnTheHostIsNamed(t *testing.T) {
	for _, hostRoot := range []bool{true, false} {
		for _, ids := range []string{"", IDsSubordinate} {
			for user, isRoot := range map[string]bool{"": true, "root": true, "0:0": true, "00": true, "1000:1000": false, "ann": false} {
				for _, kind := range []string{RootHost, RootReadOnly, RootOverlay, RootImage} {
					req := inContainer()
					req.HostRoot, req.Engine.IDs = hostRoot, ids
					if kind == RootHost {
						req.Engine.Name = "process"
					}
					p := mustBuild(t, with(trainingApp(), "ps", func(c *appdef.Component) {
						c.Limits.User = user
						switch kind {
						case RootImage:
							c.Limits.Image = "py:3"
						case RootOverlay:
							c.Limits.Root = appdef.RootOverlay
						}
					}), req)
					want := hostRoot && ids == "" && isRoot && kind != RootImage
					got := strings.Contains(appdef.Problems(p.Warnings).Error(), "root on the host's root")
					if got != want || p.Root.Kind != kind {
						t.Errorf("agent of the host's root %v, ids %q, user %q, root %s: warned %v, want %v", hostRoot, ids, user, p.Root.Kind, got, want)
					}
				}
			}
		}
	}
	for uid, want := range map[int]bool{0: true, 1000: false} { // by its number, whatever its name
		req := inContainer()
		req.HostRoot, req.User = true, &UserFacts{UID: uid}
		p := mustBuild(t, with(trainingApp(), "ps", func(c *appdef.Component) { c.Limits.User = "toor" }), req)
		if got := strings.Contains(appdef.Problems(p.Warnings).Error(), "root on the host's root"); got != want {
			t.Errorf("toor is %d: warned %v, want %v", uid, got, want)
		}
	}
}

// A run warns before its start; whose ids processes would have elsewhere is not known where a definition is checked.
func TestRootIsNamedBeforeAStart(t *testing.T) {
	app := with(trainingApp(), "ps", func(c *appdef.Component) { c.Limits.User = "root" })
	for hostRoot, found := range map[bool]appdef.Problems{
		true: StartWarnings(app, nil, HostFacts{HostRoot: true}), false: append(StartWarnings(app, nil, HostFacts{}), Check(app, nil)...),
	} {
		if got := strings.Contains(found.Error(), "root on the host's root"); got != hostRoot {
			t.Errorf("processes of the host's root %v: warned %v", hostRoot, got)
		}
	}
}

// A limit that no process can reach on this host is most likely a number of another unit.
func TestMoreThanTheHostHas(t *testing.T) {
	app := with(trainingApp(), "ps", func(c *appdef.Component) { c.Limits.MemoryMB = 99_999_999 })
	for memory, want := range map[int]bool{0: false, 24_000: true, 99_999_999: false} {
		got := strings.Contains(StartWarnings(app, nil, HostFacts{MemoryMB: memory}).Error(), "this host has no more")
		if got != want {
			t.Errorf("of %d MB: warned %v", memory, got)
		}
	}
}

func TestMoreThanTheLauncherGrants(t *testing.T) {
	req := inContainer()
	req.Allocation.Envelope = Envelope{MemoryMB: 1000, VCores: 2}
	_, problems := Build(with(trainingApp(), "ps", func(c *appdef.Component) { c.Limits.MemoryMB, c.Limits.VCores = 1001, 3 }), req)
	text := problems.Errors().Error()
	for _, want := range []string{"got 1001 MB, want at most 968 MB; the launcher's limit is 1000 MB", "got 3 vcores, want at most 2"} {
		if !strings.Contains(text, want) {
			t.Errorf("problems = %s\nwant %s", text, want)
		}
	}
}

func TestGrown(t *testing.T) {
	for _, tt := range []struct {
		share     float64
		at        string
		room      int
		ends, was int
		start     StartFacts
		want      int
	}{
		{0, "", 0, 3, 100, StartFacts{}, 100},
		{0.5, "", 0, 0, 100, StartFacts{Generation: 3, Attempt: 3}, 100},
		{0.5, "", 0, 1, 100, StartFacts{}, 150},
		{0.5, "", 0, 3, 101, StartFacts{}, 254},
		{0.5, "", 172, 1, 100, StartFacts{}, 140},
		{0.5, "", 60, 1, 100, StartFacts{}, 100},
		{0.5, "", 0, 1, 0, StartFacts{}, 0},
		{0.5, "retry", 0, 0, 100, StartFacts{Generation: 1, Attempt: 1}, 100},
		{0.5, "retry", 0, 0, 101, StartFacts{Generation: 3, Attempt: 1}, 203}, // another agent saw the others
		{0.5, "retry", 0, 1, 100, StartFacts{Generation: 2, Attempt: 2}, 150},
		{0.5, "retry", 0, 0, 100, StartFacts{Generation: 1, Attempt: 3}, 200},
	} {
		limits := Limits{MemoryMB: tt.was, Autoscale: tt.share, AutoscaleAt: tt.at}
		if got := Grown(limits, Envelope{MemoryMB: tt.room}, tt.ends, tt.start); got != tt.want {
			t.Errorf("%d MB, share %v, after %d ends in %d MB, %+v: got %d, want %d", tt.was, tt.share, tt.ends, tt.room, tt.start, got, tt.want)
		}
	}
}
