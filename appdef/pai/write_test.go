package pai_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/pai"
	"github.com/muster-agent/muster/appdef/slider"
)

// samples are the job files of the manuals.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("../../tests/jobs/pai/*.json")
	if err != nil || len(paths) < 3 {
		t.Fatalf("samples: %v, %v", paths, err)
	}
	all := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path)] = data
	}
	return all
}

// load reads a job that has no errors.
func load(t testing.TB, data []byte, options pai.Options) appdef.App {
	t.Helper()
	app, found := pai.Load(data, options)
	if bad := found.Errors(); len(bad) > 0 {
		t.Fatalf("%v in\n%s", bad, data)
	}
	return app
}

// whole is all that an App says, counts and what is kept included.
func whole(t testing.TB, app appdef.App) string {
	t.Helper()
	text, err := json.MarshalIndent(struct {
		App    appdef.App
		Counts map[string]int
	}{app, app.Counts()}, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// same writes an App, reads it back and compares.
func same(t testing.TB, app appdef.App) []byte {
	t.Helper()
	job, unsupported := pai.Write(app)
	if len(unsupported) > 0 {
		t.Errorf("unsupported %q", unsupported)
	}
	again := load(t, job, pai.Options{})
	if diff := cmp.Diff(strings.Split(whole(t, app), "\n"), strings.Split(whole(t, again), "\n")); diff != "" {
		t.Errorf("read (-), written and read again (+):\n%s\n%s", diff, job)
	}
	if appdef.Digest(app) != appdef.Digest(again) {
		t.Error("the digest changed")
	}
	return job
}

func TestWriteSamples(t *testing.T) {
	for name, data := range samples(t) {
		t.Run(name, func(t *testing.T) {
			for _, version := range []string{"", appdef.PAI05, appdef.PAI014, appdef.PAI1} {
				app := load(t, data, pai.Options{Version: version})
				job := same(t, app)
				if again, _ := pai.Write(load(t, job, pai.Options{})); string(again) != string(job) {
					t.Errorf("written again it is another:\n%s\n%s", job, again)
				}
			}
			job, _ := pai.Write(load(t, data, pai.Options{}))
			compare(t, filepath.Join("testdata", "written", name), job)
		})
	}
}

// Jobs of all kinds come back as they were.
func TestWriteJobs(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		data := randomJob(t, r)
		options := pai.Options{Version: pick(r, "", "", appdef.PAI05, appdef.PAI014, appdef.PAI1), OutputUser: r.IntN(4) == 0}
		same(t, load(t, data, options))
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, data)
		}
	}
}

// A job that was written as a package is the same job again: what a package loses is what muster only keeps, and that is named.
func TestWriteByPackage(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 2))
		data := randomJob(t, r)
		app := load(t, data, pai.Options{Version: pick(r, "", appdef.PAI05, appdef.PAI014, appdef.PAI1)})
		documents, unsupported := slider.Write(app)
		if len(unsupported) != len(app.Kept) {
			t.Errorf("unsupported %q, kept %v", unsupported, app.Kept)
		}
		files := fstest.MapFS{}
		for name, text := range documents {
			files[name] = &fstest.MapFile{Data: text}
		}
		back, found := slider.Load(files, slider.Options{})
		if bad := found.Errors(); len(bad) > 0 {
			t.Fatalf("seed %d: %v in\n%s", seed, bad, data)
		}
		job, unsupported := pai.Write(back)
		if len(unsupported) > 0 {
			t.Errorf("by a package: unsupported %q", unsupported)
		}
		app.Kept = nil
		straight, _ := pai.Write(app)
		if diff := cmp.Diff(strings.Split(string(straight), "\n"), strings.Split(string(job), "\n")); diff != "" {
			t.Errorf("written at once (-), by a package (+):\n%s", diff)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %s", seed, data)
		}
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// number is a number, now and then in quotes.
func number(r *rand.Rand, n int) any {
	if r.IntN(5) == 0 {
		return fmt.Sprint(n)
	}
	return n
}

func randomJob(t *testing.T, r *rand.Rand) []byte {
	t.Helper()
	job := map[string]any{"jobName": pick(r, "j", "tf-1", "A.b_c", "mpi", "x~y"), "image": pick(r, "busybox", "reg:5000/a/b@sha256:"+strings.Repeat("a", 64))}
	maybe := func(into map[string]any, key string, value any) {
		if r.IntN(2) == 0 {
			into[key] = value
		}
	}
	dir := func() string {
		return pick(r, "", "$PAI_DEFAULT_FS_URI/a/$PAI_JOB_NAME", "hdfs://nn/$QIZHI_USER_NAME/x", "file:///data", "/a/${PAI_USERNAME}b", "/$PAI_JOB_NAMEx $HOME")
	}
	for _, key := range []string{"authFile", "dataDir", "outputDir", "codeDir"} {
		maybe(job, key, dir())
	}
	maybe(job, "virtualCluster", pick(r, "", "default", "vc1"))
	maybe(job, "gpuType", pick(r, "", "TITANX"))
	maybe(job, "retryCount", number(r, r.IntN(5)-2))
	maybe(job, "killAllOnCompletedTaskNumber", number(r, r.IntN(3)))
	maybe(job, "tmp", map[string]any{"名称": []any{1.5, nil, "x"}})
	names := []string{"worker", "ps_server", "a.b", "A.B", "0", "x~y", "master"}
	r.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	var roles []any
	for _, name := range names[:1+r.IntN(4)] {
		roles = append(roles, randomRole(r, name, maybe))
	}
	job["taskRoles"] = roles
	envs := map[string]any{}
	maybe(envs, "A", pick[any](r, "", "x ${worker_HOST} $Y {{checkpoint}}", 1, 2.50, true))
	maybe(envs, "B_2", "<&>\u2028")
	maybe(envs, "isDebug", pick[any](r, true, "true", false))
	maybe(envs, "debuggingReservationSeconds", pick[any](r, 60, 604800, "90"))
	maybe(job, "jobEnvs", envs)
	extras := map[string]any{}
	maybe(extras, "muster.retry", pick[any](r, 3, "-1"))
	maybe(extras, "muster.restart", pick(r, "gang", "never"))
	maybe(extras, "muster.shm", 77)
	maybe(extras, "muster.complete.minFailed", pick[any](r, nil, 2))
	maybe(extras, names[0]+":muster.restart", "instance")
	maybe(extras, names[0]+":muster.complete.minFailed", pick[any](r, nil, 1, 9))
	maybe(extras, names[0]+":muster.shm", 500)
	maybe(extras, names[0]+":muster.image", "other")
	maybe(extras, names[0]+":muster.env.A", "own")
	maybe(extras, "muster.pai.version", pick(r, "0.5", "0.14", "1"))
	maybe(extras, "muster.framework", "none")
	maybe(extras, "muster.hold", "1h")
	maybe(extras, "plugin", map[string]any{"a": []any{true}})
	maybe(extras, "a/b~c", "x")
	maybe(job, "extras", extras)
	data, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func randomRole(r *rand.Rand, name string, maybe func(map[string]any, string, any)) map[string]any {
	tasks := 1 + r.IntN(4)
	role := map[string]any{"name": name, "command": pick(r, "true", "a\nb \"$PAI_X\" ${ps_HOST}", "{{port.x}} 'ü'")}
	maybe(role, "shmMB", number(r, 1+r.IntN(100)))
	maybe(role, "minFailedTaskCount", pick[any](r, nil, 1))
	maybe(role, "minSucceededTaskCount", pick[any](r, nil, 1, "1"))
	role["taskNumber"] = number(r, tasks)
	maybe(role, "cpuNumber", number(r, 1+r.IntN(4)))
	maybe(role, "memoryMB", number(r, 100+r.IntN(1000)))
	maybe(role, "gpuNumber", number(r, r.IntN(3)))
	maybe(role, "storageGB", pick[any](r, 5, "5"))
	ports := []any{}
	begin := 5000
	for _, label := range []string{"http", "ssh", "jupyter", "a.b", "http.2", "x~y"} {
		if r.IntN(2) == 0 {
			continue
		}
		p := map[string]any{"label": label}
		n := 1 + r.IntN(12)
		maybe(p, "portNumber", number(r, n))
		maybe(p, "beginAt", number(r, pick(r, 0, begin)))
		begin += 20
		ports = append(ports, p)
	}
	maybe(role, "portList", ports)
	return role
}

// What a package says and a job file cannot is named; what the file says reads back.
func TestWritePackage(t *testing.T) {
	for _, name := range []string{"tensorflow-seed", "tensorflow-published"} {
		app, found := slider.Load(os.DirFS("../../tests/packages/"+name), slider.Options{})
		if bad := found.Errors(); len(bad) > 0 {
			t.Fatal(bad)
		}
		job, unsupported := pai.Write(app)
		if !slices.IsSorted(unsupported) {
			t.Errorf("%s: unsupported is not sorted", name)
		}
		again, found := pai.Load(job, pai.Options{})
		for _, p := range found.Errors() {
			if !strings.HasSuffix(p.Pointer, "/command") { // a script is what unsupported names
				t.Errorf("%s: %s", name, p)
			}
		}
		if diff := cmp.Diff(again.Counts(), app.Counts()); diff != "" {
			t.Errorf("%s: got -, want +:\n%s", name, diff)
		}
		compare(t, filepath.Join("testdata", "written", name+".json"), job)
		compare(t, filepath.Join("testdata", "written", name+".unsupported"), []byte(strings.Join(unsupported, "\n")+"\n"))
	}
}

func TestWriteNames(t *testing.T) {
	app := load(t, []byte(`{"jobName":"j","image":"i","taskRoles":[{"name":"a","command":"c"}]}`), pai.Options{Set: []string{"a:muster.restart=instance"}})
	if job, unsupported := pai.Write(app); len(unsupported) > 0 || !strings.Contains(string(job), `"a:muster.restart": "instance"`) {
		t.Errorf("unsupported %q in\n%s", unsupported, job)
	}
	app.Dialect = "hbox"
	if _, unsupported := pai.Write(app); !slices.Contains(unsupported, "a: muster.restart=instance") {
		t.Errorf("unsupported %q", unsupported)
	}
	app.Name, app.Components[0].Name = "my job", "chief-worker"
	job, unsupported := pai.Write(app)
	if !strings.Contains(string(job), `"jobName": "my-job"`) || !strings.Contains(string(job), `"name": "chief_worker"`) || len(unsupported) < 2 {
		t.Errorf("unsupported %q in\n%s", unsupported, job)
	}
	app.Kept = map[string]any{"metainfo#/x": 1}
	app.Config["site.global.x"] = "y"
	_, unsupported = pai.Write(app)
	for _, want := range []string{"metainfo#/x: it is kept and not acted upon", "site.global.x=y"} {
		if !slices.Contains(unsupported, want) {
			t.Errorf("unsupported %q, want %q among it", unsupported, want)
		}
	}
	app.Components[0].Instances = 0
	if _, unsupported := pai.Write(app); !slices.ContainsFunc(unsupported, func(s string) bool { return strings.Contains(s, "no instances") }) {
		t.Errorf("unsupported %q", unsupported)
	}
}
