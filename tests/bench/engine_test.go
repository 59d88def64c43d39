package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/sandbox"
	"github.com/muster-agent/muster/shim/sandbox/cgroup"
	"github.com/muster-agent/muster/shim/sandbox/container"
	"github.com/muster-agent/muster/shim/sandbox/subids"
)

// The limits that every contender with a cgroup sets.
const (
	memoryLimit = 256 << 20
	pidsLimit   = 100
)

// bed is what one benchmark starts its processes with.
type bed struct {
	dir   string
	app   string
	image container.Root // with /true in it
	count int
}

// newBed makes an image of one layer that holds one static program.
func newBed(b *testing.B) *bed {
	b.Helper()
	k := &bed{dir: b.TempDir(), app: fmt.Sprintf("bench-%d", os.Getpid())}
	layer := filepath.Join(k.dir, "image")
	if err := os.Mkdir(layer, 0o755); err != nil {
		b.Fatal(err)
	}
	compile(b, filepath.Join(layer, "true"), "int main(void) { return 0; }\n")
	k.image = container.Root{
		Layers:  []string{layer},
		Entries: []container.Entry{{Name: "true", Layers: []string{filepath.Join(layer, "true")}}},
	}
	return k
}

func (k *bed) trueProgram() string { return filepath.Join(k.image.Layers[0], "true") }

// engines are those that this host permits, by the names of their rows; containers are made of the image, as those of the
// rivals are, and of the host's own root.
func (k *bed) engines(b *testing.B) []engine {
	b.Helper()
	standing, err := sandbox.Look(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	all := []engine{{name: "process", engine: sandbox.Process{}, argv: k.trueProgram()}}
	if standing.Cgroup == "" {
		all = append(all, engine{name: "cgroup", engine: sandbox.Cgroup{Tree: standing.Tree}, argv: k.trueProgram()})
	} else {
		b.Logf("without the cgroup engine: %s", standing.Cgroup)
	}
	if standing.Cgroup == "" && standing.Container == "" {
		c := sandbox.Container{Tree: standing.Tree}
		all = append(all, engine{name: "container", engine: c, argv: "/true", root: k.image},
			engine{name: "container-of-the-host", engine: c, argv: "/bin/true"})
	} else {
		b.Logf("without the container engine: %s", standing.Container)
	}
	return all
}

// engine is one of ours with what it runs.
type engine struct {
	name   string
	engine sandbox.Engine
	argv   string
	root   container.Root

	ids        *subids.Map // nil: the host's
	unfiltered bool        // without the filter of system calls
}

const patience = 30 * time.Second

func (k *bed) park(e engine) (*sandbox.Guard, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	k.count++
	instance := fmt.Sprintf("true-%d", k.count)
	log, err := k.logOf(e)
	if err != nil {
		return nil, err
	}
	return e.engine.StartGuard(ctx, sandbox.Options{
		LogDir: log,
		Confine: sandbox.Confinement{
			App: k.app, Instance: instance, Hostname: instance, Dir: filepath.Join(k.dir, instance),
			Limits: cgroup.Limits{Memory: memoryLimit, Pids: pidsLimit}, Root: e.root,
			IDs: e.ids, Unfiltered: e.unfiltered,
		},
	})
}

// logOf is the log folder for an engine's ids.
func (k *bed) logOf(e engine) (string, error) {
	if e.ids == nil {
		return filepath.Join(k.dir, "log"), nil
	}
	dir := filepath.Join(k.dir, "log-of-ids")
	uid, _ := e.ids.UID(0)
	gid, _ := e.ids.GID(0)
	return dir, errors.Join(os.MkdirAll(dir, 0o755), os.Chown(dir, uid, gid))
}

// finish waits until nothing of the process is left and takes the rest away.
func finish(g *sandbox.Guard) error {
	code, err := awaitEmpty(g)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d", code)
	}
	return errors.Join(err, g.Close())
}

func awaitEmpty(g *sandbox.Guard) (code int, err error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	code = -1
	for {
		select {
		case e, ok := <-g.Events():
			switch e := e.(type) {
			case sandbox.Exited:
				if e.Exit.Code != nil {
					code = *e.Exit.Code
				}
			case sandbox.Empty:
				return code, nil
			}
			if !ok {
				return code, errors.New("events ended before the process did")
			}
		case <-late.C:
			return code, fmt.Errorf("no end within %s", patience)
		}
	}
}

func (e engine) spec() sandbox.Spec {
	return sandbox.Spec{Attempt: 1, Argv: []string{e.argv}, Env: []string{"PATH=/usr/bin:/bin"}, Dir: "/"}
}

// whole is create + start + end: the guard is parked, told to start, and all is taken away.
func (k *bed) whole(e engine) contender {
	return timed(e.name, func() error {
		g, err := k.park(e)
		if err != nil {
			return err
		}
		if _, err := g.Start(e.spec()); err != nil {
			return errors.Join(err, g.Close())
		}
		return finish(g)
	})
}

// release is what an agent still has to do when the gang is complete: Start returns when the exec has happened.
func (k *bed) release(e engine) contender {
	return contender{e.name, func() (cost, error) {
		g, err := k.park(e)
		if err != nil {
			return cost{}, err
		}
		c, err := spent(func() error {
			_, err := g.Start(e.spec())
			return err
		})
		if err != nil {
			return cost{}, errors.Join(err, g.Close())
		}
		return c, finish(g)
	}}
}
