package confine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/muster-agent/muster/cmd/muster-gpu/nvmltest"
	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// hostileLinks: an image whose folders lead to the host's. It runs or it fails, and nothing outside changes.
func hostileLinks(t *testing.T, s shared) {
	victim := folder.OfAll(t, folder.Temp(t, "mc-"))
	for _, name := range []string{"passwd", "hosts", "null"} {
		path := filepath.Join(victim, name)
		err := os.WriteFile(path, []byte("precious\n"), 0o600)
		if err = errors.Join(err, os.Chmod(path, 0o666)); err != nil { //nolint:gosec // any user may
			t.Fatal(err)
		}
	}
	before := tree(t, victim)
	for _, folders := range [][]string{{"dev"}, {"proc"}, {"sys"}, {"etc"}, {"tmp"}, {"run"}, {"var"}, {"work"}, {"dev", "proc", "sys", "etc", "tmp"}} {
		t.Run(strings.Join(folders, "+"), func(t *testing.T) {
			t.Parallel()
			var links []registryserver.File
			for _, name := range folders {
				links = append(links, link(name, victim))
			}
			ref := s.picture(t, "hostile-"+strings.Join(folders, "-"), ispec.ImageConfig{Env: []string{"PATH=/usr/bin:/bin"}}, links...)
			// What it writes at the places that it made lead to the victim is to stay inside.
			j := imageJob(t, "for d in "+victim+" /dev /etc /proc /sys; do echo x >>$d/null; echo x >>$d/passwd; echo x >>$d/hosts; touch $d/new; done 2>/dev/null; echo masked $(cat /proc/kcore /proc/keys /proc/timer_list 2>/dev/null | head -c 100 | wc -c); echo ran", ref, nil)
			e := j.run()
			if e.code == 0 {
				has(t, j.log("stdout.log"), settings{"ran": "", "masked": "0"})
			} else if e.Cause == "" || e.Class == nil || *e.Class == "muster" {
				t.Errorf("exit code %d without a word that helps: %q", e.code, e.Cause)
			}
			t.Logf("exit code %d %s", e.code, e.Cause)
			if after := tree(t, victim); after != before {
				t.Errorf("the folder outside was\n%sand is\n%s", before, after)
			}
			if left := j.mounts(); len(left) > 0 {
				t.Errorf("mounts are left: %v", left)
			}
		})
	}
}

// hostileFiles: an image without the folders that a root has, or with other things in their places.
func hostileFiles(t *testing.T, s shared) {
	program, err := os.ReadFile(muster)
	if err != nil {
		t.Fatal(err)
	}
	for name, files := range map[string][]registryserver.File{
		"nothing else":   nil,
		"file for proc":  {file("proc", "x")},
		"file for dev":   {file("dev", "x")},
		"file for etc":   {file("etc", "x")},
		"file for tmp":   {file("tmp", "x")},
		"loops":          {link("tmp", "tmp"), link("etc", "/etc"), link("dev", "./dev")},
		"links upwards":  {link("tmp", "../../../../../../tmp"), link("proc", "../../.."), link("etc", "..")},
		"links to /proc": {link("dev", "/proc/self/root"), link("etc", "/proc/1/cwd"), link("tmp", "/proc/self/fd")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := append(append([]registryserver.File{}, files...), file("muster", string(program)))
			layer := registryserver.Pack(t, ispec.MediaTypeImageLayerGzip, registryserver.Tar(t, all...))
			ref := s.Push("odd-"+strings.Map(letter, name), "1", registryserver.NewImage(t, ispec.ImageConfig{Entrypoint: []string{"/muster"}, Cmd: []string{"version"}}, ispec.Platform{}, layer))
			j := imageJob(t, "", ref, nil)
			e := j.run()
			if e.code != 0 || !strings.Contains(j.log("stdout.log"), "muster") {
				t.Errorf("exit code %d (%s), the program says %q; want 0 and its version", e.code, e.Cause, j.log("stdout.log"))
			}
			if left := j.mounts(); len(left) > 0 {
				t.Errorf("mounts are left: %v", left)
			}
			if left := glob(t, filepath.Join(j.work, "root", "*")); len(left) > 0 {
				t.Errorf("folders of containers are left: %v", left)
			}
		})
	}
}

// letter keeps what a repository's name may have.
func letter(r rune) rune {
	if r >= 'a' && r <= 'z' {
		return r
	}
	return -1
}

// tree is what a folder holds, with modes and contents.
func tree(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		b.WriteString(info.Mode().String() + " " + path + " " + read(path) + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// spy is a library that leaves a trace in its folder wherever it is loaded.
func spy(t *testing.T) (library, traces string) {
	t.Helper()
	dir := folder.Temp(t, "mc-spy-")
	if _, err := exec.LookPath("gcc"); err != nil {
		need.Skip(t, "needs gcc")
	}
	traces = folder.OfAll(t, filepath.Join(dir, "traces"))
	source := `#include <fcntl.h>
__attribute__((constructor)) static void loaded(void) { (void)!open("` + traces + `/seen", O_CREAT | O_WRONLY, 0600); }
`
	library = filepath.Join(dir, "spy.so")
	build := exec.CommandContext(t.Context(), "gcc", "-shared", "-fPIC", "-x", "c", "-o", library, "-")
	build.Stdin = strings.NewReader(source)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	if out, err := (&exec.Cmd{Path: "/bin/true", Env: []string{"LD_PRELOAD=" + library}}).CombinedOutput(); err != nil || absent(filepath.Join(traces, "seen")) {
		t.Fatalf("the library is not loaded where it is wanted: %v, %s", err, out)
	}
	if err := os.Remove(filepath.Join(traces, "seen")); err != nil {
		t.Fatal(err)
	}
	return library, traces
}

// hostileVariables: what an image wants loaded into each program is loaded into none outside of the container.
func hostileVariables(t *testing.T, s shared) {
	library, traces := spy(t)
	text, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	ref := s.picture(t, "preload", ispec.ImageConfig{Env: []string{"PATH=/usr/bin:/bin", "LD_PRELOAD=" + library, "LD_LIBRARY_PATH=" + filepath.Dir(library), "MUSTER_AGENT_ENGINE=process"}},
		file("etc/ld.so.preload", "/inside.so\n"), file("inside.so", string(text)))
	j := imageJob(t, "mkdir -p "+traces+"; id -u; test -e "+traces+"/seen && echo loaded inside", ref, nil)
	if out := j.succeeds(); !strings.HasSuffix(out, "loaded inside\n") {
		t.Errorf("the image's own programs do not load it: %q", out)
	}
	if !absent(filepath.Join(traces, "seen")) {
		t.Error("a program outside of the container has loaded what the image named")
	}
}

// A program of the host that a device's CDI spec names sees nothing of what the image and the app say (CVE-2025-23266).
func TestHooksSeeNothingOfTheImage(t *testing.T) {
	need.Root(t)
	t.Parallel()
	library, traces := spy(t)
	hook, seen := filepath.Join(filepath.Dir(library), "hook.sh"), filepath.Join(filepath.Dir(library), "environment")
	err := os.WriteFile(hook, []byte("#!/bin/sh\nenv >>"+seen+"\n"), 0o755) //nolint:gosec // a program
	// One hook is run by the host's root, the other by the container's.
	err = errors.Join(err, os.WriteFile(seen, nil, 0o600), os.Chmod(seen, 0o666)) //nolint:gosec // see above
	if err != nil {
		t.Fatal(err)
	}
	g := newGPUs(t, nvmltest.Host{})
	uuid := nvmltest.UUID(g.first)
	var devices []any
	for i := range 8 {
		edits := object{
			"deviceNodes": []object{{"path": fmt.Sprintf("/dev/nvidia%d", g.first+i)}}, "env": []string{"FROM_CDI=yes"},
			"hooks": []object{
				{"hookName": "createRuntime", "path": hook, "args": []string{"hook.sh"}},
				{"hookName": "createContainer", "path": hook, "args": []string{"hook.sh"}},
			},
		}
		devices = append(devices, object{"name": nvmltest.UUID(g.first + i), "containerEdits": edits})
	}
	text, err := json.Marshal(object{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu", "devices": devices})
	if err != nil {
		t.Fatal(err)
	}
	spec := filepath.Join(filepath.Dir(library), "cdi.json")
	if err := os.WriteFile(spec, text, 0o644); err != nil {
		t.Fatal(err)
	}
	server := registryserver.Start(t, registryserver.Options{})
	s := shared{Server: server, root: registryserver.Root(t, "glibc")}
	ref := s.picture(t, "preload", ispec.ImageConfig{Env: []string{"PATH=/usr/bin:/bin", "LD_PRELOAD=" + library, "IMAGE_WORD=1"}})
	j := g.job("echo cdi $FROM_CDI; echo nvidia $NVIDIA_VISIBLE_DEVICES; for n in /dev/nvidia*; do echo ${n#/dev/}; done", settings{
		"muster.image": ref, "yarn.io/gpu": "1", "muster.env.APP_WORD": "1", "muster.env.LD_PRELOAD": library,
	})
	j.env = append(j.env, "XDG_CACHE_HOME="+images, cdiVariable+"="+spec)
	has(t, j.succeeds("--engine", "container"), settings{"cdi": "yes", "nvidia": uuid, fmt.Sprintf("nvidia%d", g.first): ""})
	environment := read(seen)
	if !strings.Contains(environment, "PWD=") {
		t.Errorf("the hooks did not run: %q", environment)
	}
	for _, word := range []string{"LD_PRELOAD", "IMAGE_WORD", "APP_WORD", "FROM_CDI"} {
		if strings.Contains(environment, word) {
			t.Errorf("the hooks see %s:\n%s", word, environment)
		}
	}
	if !absent(filepath.Join(traces, "seen")) {
		t.Error("a program outside of the container has loaded what the image named")
	}
}
