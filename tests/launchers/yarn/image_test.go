package yarn_test

import (
	"archive/tar"
	"path/filepath"
	"testing"

	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// An image in a NodeManager's containers: its agents are an ordinary user's, pull it by themselves, and leave nothing
// that the NodeManager cannot remove, also when it kills them.
func TestImageUnderYARN(t *testing.T) {
	l := newLab(t, map[string]string{"yarn.nodemanager.delete.debug-delay-sec": "0"})
	server := registryserver.Start(t, registryserver.Options{})
	own := registryserver.Tar(t,
		registryserver.File{Header: tar.Header{Name: "srv/closed", Typeflag: tar.TypeDir, Mode: 0o555}},
		registryserver.File{Header: tar.Header{Name: "srv/closed/file", Mode: 0o444}, Content: "of the image"})
	image := server.Push("own", "1", registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{},
		append(registryserver.Root(t, "glibc"), registryserver.Pack(t, ispec.MediaTypeImageLayerGzip, own))...))
	run := func(t *testing.T, form, app, then string) *job {
		t.Parallel()
		return l.of(t).submit(form, app, "--engine", "container", "--set", "global:muster.image="+image,
			"--instances", "worker=1", "--set", "muster.framework=none", "--set", "muster.restart=never",
			"--set", `muster.command=test "$(cat /srv/closed/file)" = "of the image" && touch /srv/closed/mine && `+then)
	}
	t.Run("all", func(t *testing.T) {
		t.Run("succeeds", func(t *testing.T) {
			j := run(t, "service", "image-good", "exit 0")
			j.await("its verdict", func() bool { return j.status().Outcome != "" })
			if s := j.status(); s.Outcome != "succeeded" {
				t.Errorf("got %+v, want it to succeed", s)
			}
			j.y.StopService(j.app)
			j.cleaned()
		})
		t.Run("killed", func(t *testing.T) {
			j := run(t, "shell", "image-killed", "exec sleep 1000")
			j.awaitPhase("running")
			j.y.Kill(j.id)
			j.ends("KILLED")
			j.cleaned()
		})
	})
}

// cleaned waits until the NodeManagers have no folder of the application any more.
func (j *job) cleaned() {
	j.t.Helper()
	j.await("the NodeManagers to have cleaned up", func() bool {
		left, err := filepath.Glob(filepath.Join(j.y.Dir, "node-*/local/usercache/*/appcache", j.id))
		if err != nil {
			j.t.Fatal(err)
		}
		return len(left) == 0
	})
}
