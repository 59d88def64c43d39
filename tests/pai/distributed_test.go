package pai_test

import (
	"archive/tar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	ispec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/muster-agent/muster/tests/folder"
	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/registryserver"
)

// seed is the distributed job of QIZHI's manual, to the letter.
const seed = "../jobs/pai/tensorflow-distributed.json"

// seedFolder is where the job has its files in the default file system.
const seedFolder = "path/tensorflow-distributed-jobguid"

// benchmarks is the job with data, and a script in place of the benchmarks that checks all it is told.
func benchmarks(t *testing.T) *job {
	t.Helper()
	j := newJob(t, read(seed))
	j.lay(seedFolder+"/code/tf_cnn_benchmarks.py", read("testdata/tf_cnn_benchmarks.py"))
	j.lay(seedFolder+"/data/batch_1.bin", "1 2 3\n4 5\n")
	folder.OfAll(t, filepath.Join(j.store, seedFolder)) // where a task makes output
	return j
}

// The distributed job of the manual: two parameter servers, two workers, two ports each. All that a laptop lacks is named on
// the command line: the image and the GPUs. Two tasks that are done end the job, and the servers with it.
func TestDistributed(t *testing.T) {
	consul := consulserver.Start(t, consulserver.Options{})
	for name, place := range map[string]func(*testing.T, *job) []string{"host": ownPython, "image": ownImage} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := benchmarks(t)
			args := append(place(t, j), "--registry", consul.URL(), "--host", "127.0.0.1", "--set", "worker:yarn.io/gpu=0")
			e := j.run(args...)
			e.is(t, "succeeded", 0, 1)
			for i, other := range []string{"1", "0"} {
				got := read(filepath.Join(j.store, seedFolder, "output", "worker-"+string('0'+rune(i))))
				if want := "met ps_server 0, ps_server 1, worker " + other + "; read 5 rows\n"; got != want {
					t.Errorf("worker-%d left %q, want %q", i, got, want)
				}
			}
			for _, name := range []string{"ps_server-0", "ps_server-1", "worker-0", "worker-1"} {
				if got := j.log(name); !strings.Contains(got, "every variable is as promised\n") {
					t.Errorf("%s wrote %q", name, got)
				}
				want := 0
				if strings.HasPrefix(name, "ps_server") {
					want = 143 // SIGTERM, by muster
				}
				if got := e.exit(t, name); got != want {
					t.Errorf("%s ended with %d, want %d", name, got, want)
				}
			}
		})
	}
}

// ownPython is the host's: `python` is its python3, and `pip` installs nothing. They lie where a container has them as well.
func ownPython(t *testing.T, j *job) []string {
	t.Helper()
	bin := filepath.Join(j.store, "bin")
	j.lay("bin/pip", "#!/bin/sh\n")
	j.runnable("bin/pip")
	j.must(os.Symlink("/usr/bin/python3", filepath.Join(bin, "python")))
	return []string{"--set", "global:muster.image=host", "--env", "PATH=" + bin + ":/usr/bin:/bin"}
}

// ownImage is one of those that the manual has everybody make: Python with the two programs in it.
func ownImage(t *testing.T, _ *job) []string {
	t.Helper()
	need.Root(t)
	return []string{"--engine", "container", "--set", "global:muster.image=" + pythonImage(t)}
}

// pythonImage is an image with bash, and the programs that the manual's images have under their own names.
func pythonImage(t *testing.T) string {
	t.Helper()
	s := registryserver.Start(t, registryserver.Options{})
	programs := registryserver.Tar(t,
		registryserver.File{Header: tar.Header{Name: "usr/local/bin/pip", Mode: 0o755}, Content: "#!/bin/sh\n"},
		registryserver.File{Header: tar.Header{Name: "usr/local/bin/python", Typeflag: tar.TypeSymlink, Linkname: "/usr/bin/python3"}},
	)
	layers := append(slices.Clone(registryserver.Root(t, "glibc")), registryserver.Pack(t, ispec.MediaTypeImageLayerGzip, programs))
	config := ispec.ImageConfig{Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin"}}
	return s.Push("qizhi.run.tensorflow", "latest", registryserver.NewImage(t, config, ispec.Platform{}, layers...))
}
