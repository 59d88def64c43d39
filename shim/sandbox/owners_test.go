package sandbox

import (
	"archive/tar"
	"testing"

	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/muster-agent/muster/packages/image"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// A container whose layers were copied with its owners finds the image as it is made: its root owns what is root's, may
// change it, and finds set-user-ID files, attributes and whiteouts. The copies stay as they are.
func TestLayersWithTheOwnersOfAContainer(t *testing.T) {
	need.Root(t)
	parallel(t)
	s := registryserver.Start(t, registryserver.Options{})
	layers := registryserver.Root(t, "glibc")
	app := func(name string, mode int64, uid int) registryserver.File {
		return registryserver.File{Header: tar.Header{Name: name, Mode: mode, Uid: uid, Gid: uid}, Content: "x"}
	}
	for _, files := range [][]registryserver.File{
		{app("srv/gone", 0o644, 0), app("srv/su", 0o4755, 0), app("srv/app", 0o600, 1000)}, {app("srv/.wh.gone", 0o644, 0)},
	} {
		layers = append(layers, registryserver.Pack(t, ispec.MediaTypeImageLayerGzip, registryserver.Tar(t, files...)))
	}
	ref := s.Push("owned", "1", registryserver.NewImage(t, ispec.ImageConfig{}, ispec.Platform{}, layers...))
	pulled, err := image.Pull(t.Context(), ref, image.Options{Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer pulled.Close()
	ids := testIDs(t)
	owned, err := pulled.WithOwners(t.Context(), image.Owners{Key: "test", UID: ids.UID, GID: ids.GID})
	if err != nil {
		t.Fatal(err)
	}
	defer owned.Close()
	top, err := owned.TopLevel()
	if err != nil {
		t.Fatal(err)
	}
	root := container.Root{Layers: owned.Layers, Owned: true}
	for _, e := range top {
		root.Entries = append(root.Entries, container.Entry{Name: e.Name, Link: e.Target, Dir: e.Kind == image.Dir, Layers: e.Paths})
	}
	for _, time := range []string{"first", "second"} { // which finds nothing of what the first has written
		t.Run(time, func(t *testing.T) {
			g := containerGuard(t, func(c *Confinement) { c.Root = root })
			got := inside(t, g, `stat -c '%n %u:%g %a' / /etc /usr/bin /srv /srv/*
			echo changed >/etc/passwd; read line </etc/passwd; echo $line
			rm /srv/su; chown 7:8 /srv/app; stat -c '%n %u:%g' /srv/*`)
			want := "/ 0:0 755\n/etc 0:0 755\n/usr/bin 0:0 755\n/srv 0:0 755\n/srv/app 1000:1000 600\n/srv/su 0:0 4755\n" +
				"changed\n/srv/app 7:8\n"
			if got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}
