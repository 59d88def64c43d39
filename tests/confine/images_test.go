package confine_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// shared is what the stories of images have in common: a registry, and the two images with Python.
type shared struct {
	*registryserver.Server
	glibc, musl string
	root        []registryserver.Layer // of the former
}

// picture is an image of glibc with a configuration and files of its own.
func (s shared) picture(t *testing.T, name string, config ispec.ImageConfig, files ...registryserver.File) string {
	t.Helper()
	layers := append(append([]registryserver.Layer{}, s.root...), registryserver.Pack(t, ispec.MediaTypeImageLayerGzip, registryserver.Tar(t, files...)))
	return s.Push(name, "1", registryserver.NewImage(t, config, ispec.Platform{}, layers...))
}

func file(name, content string) registryserver.File {
	return registryserver.File{Header: tar.Header{Name: name}, Content: content}
}

func link(name, target string) registryserver.File {
	return registryserver.File{Header: tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}}
}

func TestImages(t *testing.T) {
	need.Root(t)
	s := shared{Server: registryserver.Start(t, registryserver.Options{}), root: registryserver.Root(t, "glibc")}
	s.glibc, s.musl = s.PushPython("python", "glibc"), s.PushMusl("python", "musl")
	for name, story := range map[string]func(t *testing.T, s shared){
		"handwriting with glibc": func(t *testing.T, s shared) { handwriting(t, s.glibc) },
		"handwriting with musl":  func(t *testing.T, s shared) { handwriting(t, s.musl) },
		"configuration":          imageConfiguration,
		"users":                  imageUsers,
		"not there":              imageMissing,
		"a layout":               imageLayout,
		"a plain user's":         imageOfPlainUser,
		"hostile links":          hostileLinks,
		"hostile files":          hostileFiles,
		"hostile variables":      hostileVariables,
		"writes":                 imageWrites,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			story(t, s)
		})
	}
}

// imageJob is a job whose images are kept with those of the other tests.
func imageJob(t testing.TB, command, image string, more settings) *job {
	t.Helper()
	j := newJob(t, command, with(settings{"muster.image": image}, more))
	j.env = append(j.env, "XDG_CACHE_HOME="+images)
	return j
}

// handwriting learns in an image as it does on the host.
func handwriting(t *testing.T, image string) {
	j := blankJob(t, nil)
	j.dir, j.env = "catalog:handwriting", append(j.env, "XDG_CACHE_HOME="+images)
	out := j.succeeds("--engine", "container", "--instances", "ps=1,worker=2", "--set", "global:muster.image="+image,
		"--set", "site.global.train.steps=500", "--set", "site.global.train.pace=0")
	found := regexp.MustCompile(`(?m)^accuracy (0\.\d+)$`).FindStringSubmatch(out)
	if found == nil {
		t.Fatalf("worker-0 tells no accuracy:\n%s", out)
	}
	if a, err := strconv.ParseFloat(found[1], 64); err != nil || a < 0.85 {
		t.Errorf("accuracy %s, want 0.85 at least", found[1])
	}
}

// imageConfiguration: what the image says of its start holds where the app says nothing.
func imageConfiguration(t *testing.T, s shared) {
	config := ispec.ImageConfig{
		Entrypoint: []string{"/entry", "fixed"}, Cmd: []string{"own", "words"}, WorkingDir: "/srv/place", User: "app",
		Env: []string{"PATH=/usr/bin", "COLOUR=blue", "MUSTER_APP_ID=forged", "TASTE=sweet"},
	}
	ref := s.picture(t, "configured", config,
		file("entry", "#!/bin/sh\necho arguments \"$@\"; echo in $(pwd); echo ids $(id -u) $(id -g) $(id -G); echo home $HOME; echo colour $COLOUR; echo taste $TASTE; echo app $MUSTER_APP_ID\n"),
		registryserver.File{Header: tar.Header{Name: "srv/place", Typeflag: tar.TypeDir}})
	want := map[string]string{"in": "/srv/place", "ids": "1000 1000 1000 50", "home": "/home/app", "colour": "blue"}
	j := imageJob(t, "", ref, settings{"muster.env.TASTE": "sour"}).anyUser()
	has(t, j.succeeds(), with(want, settings{"arguments": "fixed own words", "taste": "sour", "app": j.app}))
	j = imageJob(t, "echo here", ref, nil).anyUser()
	has(t, j.succeeds(), with(want, settings{"arguments": "fixed bash -c echo here", "taste": "sweet"}))
}

// imageUsers: names are those of the image, and the folders of the run belong to whom the process is.
func imageUsers(t *testing.T, s shared) {
	for user, want := range map[string]settings{
		"":        {"ids": "0 0 0", "home": "/root"},
		"app":     {"ids": "1000 1000 1000 50", "home": "/home/app", "user": "app"},
		"app:50":  {"ids": "1000 50 50", "home": "/home/app"},
		"4242":    {"ids": "4242 0 0", "home": "/"},
		"nobody":  {"ids": "65534 65534 65534", "user": "nobody"},
		"77:78":   {"ids": "77 78 78"},
		"unknown": nil,
	} {
		t.Run("user "+user, func(t *testing.T) {
			t.Parallel()
			j := imageJob(t, whoami, s.glibc, settings{}).anyUser()
			if user != "" {
				j.define(whoami, settings{"muster.image": s.glibc, "muster.user": user})
			}
			if want == nil {
				j.run().fails(t, registry.ClassDefinition, 65, `user "unknown"`)
				return
			}
			out := j.succeeds()
			has(t, out, want)
			has(t, out, settings{"written": "4"})
			if said := j.log("stderr.log"); said != "to stderr\n" {
				t.Errorf("stderr %q, want what was written", said)
			}
		})
	}
}

// imageLayout: an image that lies on this host has its files belong to its own users.
func imageLayout(t *testing.T, s shared) {
	owned := registryserver.Tar(t, registryserver.File{Header: tar.Header{Name: "srv/owned", Uid: 1000, Gid: 50}})
	layers := append(slices.Clone(s.root), registryserver.Pack(t, ispec.MediaTypeImageLayerGzip, owned))
	dir := registryserver.WriteLayout(t, "v1",
		registryserver.NewImage(t, ispec.ImageConfig{User: "app"}, ispec.Platform{}, layers...),
		registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, s.root...))
	if err := os.Chmod(filepath.Dir(dir), 0o711); err != nil {
		t.Fatal(err)
	}
	j := imageJob(t, whoami+"; echo owners $(stat -c %u:%g /etc/passwd /srv/owned)", "oci:"+dir+":v1", nil)
	has(t, j.succeeds(), settings{
		"ids": "1000 1000 1000 50", "home": "/home/app", "written": "4", "owners": "0:0 1000:50",
	})
}

// imageMissing: what cannot be had is said in words, with the class that is an image's.
func imageMissing(t *testing.T, s shared) {
	closed := registryserver.Start(t, registryserver.Options{Login: &registryserver.Login{User: "ada", Password: "lovelace"}})
	ref := closed.Push("team/train", "1", registryserver.NewImage(t, ispec.ImageConfig{User: "4:5"}, ispec.Platform{}, s.root...))
	login := func(text string) string {
		path := filepath.Join(t.TempDir(), "login")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return "file:" + path
	}
	good := login(closed.Addr + "\nada\nlovelace\n")
	for name, c := range map[string]struct {
		image, auth string
		words       []string // of the cause; nil: it works
	}{
		"no such image":  {s.Ref("nothing:1"), "", []string{s.Ref("nothing:1"), "not found"}},
		"no such tag":    {s.Ref("python:other"), "", []string{"not found"}},
		"no login":       {ref, "", []string{"not permitted"}},
		"wrong password": {ref, login(closed.Addr + "\nada\nguess\n"), []string{"not permitted"}},
		"login":          {ref, good, nil},
		"no registry":    {"127.0.0.1:1/x:1", "", []string{"not reached"}},
		"no layout":      {"oci:/nowhere/at/all", "", []string{"/nowhere/at/all"}},
		"no reference":   {"UPPER/case:1", "", []string{"UPPER/case:1"}},
	} {
		t.Run(name, func(t *testing.T) {
			more := settings{}
			if c.auth != "" {
				more["muster.image.auth"] = c.auth
			}
			j := imageJob(t, "id -u", c.image, more)
			if path, ok := strings.CutPrefix(c.auth, "file:"); ok {
				j.env = append(j.env, "MUSTER_AGENT_POLICY="+j.policy(object{
					"users":        object{"names": []string{"4"}, "groups": []string{"5"}},
					"secret_files": []string{path},
				}))
			}
			e := j.run()
			if said := j.log("agent.log") + e.said; strings.Contains(said, "lovelace") || strings.Contains(said, "guess") {
				t.Errorf("a password is told:\n%s", said)
			}
			if c.words != nil {
				e.fails(t, registry.ClassImage, 69, c.words...)
				return
			}
			if e.code != 0 || j.log("stdout.log") != "4\n" {
				t.Errorf("exit code %d (%s), said %q; want 0 and the image's user", e.code, e.Cause, j.log("stdout.log"))
			}
		})
	}
}

// An image that is in the cache needs no registry: by its digest nobody is asked, by its tag a warning tells.
func TestImageFromCache(t *testing.T) {
	need.Root(t)
	t.Parallel()
	s := registryserver.Start(t, registryserver.Options{})
	p := registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, registryserver.Root(t, "glibc")...)
	tag := s.Push("cached", "1", p)
	byDigest := s.Ref("cached@" + p.Manifest.Digest.String())
	j := imageJob(t, "echo it runs", byDigest, nil)
	j.env = []string{"XDG_CACHE_HOME=" + t.TempDir()}
	for i, c := range []struct{ ref, warns string }{{tag, ""}, {byDigest, ""}, {tag, "level=WARN"}} {
		if i == 1 {
			s.Stop()
		}
		j.app += "x"
		j.define("echo it runs", settings{"muster.image": c.ref})
		if out := j.succeeds(); !strings.HasSuffix(out, "it runs\n") {
			t.Errorf("%s: said %q", c.ref, out)
		}
	}
	if said := j.log("agent.log"); !regexp.MustCompile(`level=WARN .*` + regexp.QuoteMeta(tag)).MatchString(said) {
		t.Errorf("that the registry does not answer is not told:\n%s", said)
	}
	j.app += "x"
	j.env = []string{"XDG_CACHE_HOME=" + t.TempDir()}
	j.run().fails(t, registry.ClassImage, 69, "not reached")
}

// imageWrites: what a container writes is its own; the next one finds the image as it was.
func imageWrites(t *testing.T, s shared) {
	for range 2 {
		j := imageJob(t, "test ! -e /usr/mine && echo clean; touch /usr/mine /etc/mine && rm -r /usr/bin/env && echo wrote", s.glibc, nil)
		has(t, j.succeeds(), settings{"clean": "", "wrote": ""})
		if got := glob(t, filepath.Join(j.work, "root", "*")); len(got) > 0 {
			t.Errorf("folders of the container are left: %v", got)
		}
	}
}

// imageOfPlainUser: an ordinary user has an image's root too, as the only user of it.
func imageOfPlainUser(t *testing.T, s shared) {
	j := jobOf(t, plainUser(), whoami, settings{"muster.image": s.glibc})
	has(t, j.succeeds("--engine", "container"), settings{"ids": "0 0 0", "written": "4"})
	if got := owner(t, j.own("mine")); got != "54321" {
		t.Errorf("what it wrote belongs to %s on the host, want 54321", got)
	}
	j.app += "x"
	j.define(whoami, settings{"muster.image": s.glibc, "muster.user": "app"})
	j.run("--engine", "container").fails(t, registry.ClassNotPermitted, 77, "user app of the image", "muster.user=0:0")
}
