package yarn_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/leash"
	"github.com/muster-agent/muster/tests/servers/consulserver"
	"github.com/muster-agent/muster/tests/servers/hadoop"
)

// What YARN is asked for in megabytes: an agent of the catalog's handwriting (256 and the agent's own), and masters.
const (
	agentRoom  = 256 + 64
	masterRoom = 256
	wholeHost  = 8192
)

// lab is a YARN with its HDFS, and a Consul.
type lab struct {
	t      testing.TB
	hdfs   *hadoop.Cluster
	y      *hadoop.YARN
	consul *consulserver.Server
	dir    string // of this test, on HDFS
	own    string // folder of this test, on this machine
	muster string // that submits
	// collected is where YARN brings logs to, on HDFS.
	collected string
}

// newLab starts all; more is of yarn-site.xml, and wins.
func newLab(t testing.TB, more map[string]string) *lab {
	t.Helper()
	return labWith(t, hadoop.YARNOptions{Site: more})
}

// labWith is newLab with a test's own wishes for its YARN.
func labWith(t testing.TB, o hadoop.YARNOptions) *lab {
	t.Helper()
	return labOn(t, hadoop.Shared(t), o)
}

// labOn is labWith beside an HDFS of the test's own.
func labOn(t testing.TB, c *hadoop.Cluster, o hadoop.YARNOptions) *lab {
	t.Helper()
	l := &lab{t: t, hdfs: c, consul: consulserver.Start(t, consulserver.Options{}), dir: c.URI + c.Folder(t), own: t.TempDir(), muster: muster}
	// As /tmp of a cluster: a store is refused where others could exchange files.
	c.FsShell(t, "-chmod", "1777", l.dir)
	c.FsShell(t, "-chmod", "755", "/tests")
	l.collected = c.Folder(t)
	if err := os.Chmod(filepath.Dir(l.own), 0o755); err != nil { // for YARN's user
		t.Fatal(err)
	}
	site := map[string]string{
		"yarn.log-aggregation-enable":             "true",
		"yarn.nodemanager.remote-app-log-dir":     l.collected,
		"yarn.nodemanager.delete.debug-delay-sec": "3600", // what has been collected is looked at where it was, too
		"yarn.scheduler.minimum-allocation-mb":    "16",   // or what is asked for would be more than what is asked for
		"yarn.nodemanager.resource.memory-mb":     fmt.Sprint(wholeHost),
	}
	maps.Copy(site, o.Site)
	o.Site = site
	l.y = c.StartYARN(t, o)
	return l
}

// of is the lab as a subtest has it.
func (l *lab) of(t testing.TB) *lab {
	own := *l
	own.t, own.y = t, l.y.In(t)
	return &own
}

// command is a program as a person at a host of the cluster runs it.
func (l *lab) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(l.t.Context(), name, args...)
	cmd.Env = append(l.hdfs.Environ(), l.y.Clients()...)
	cmd.Env = append(cmd.Env, "HADOOP_HOME="+l.y.Home(), "PATH="+filepath.Join(l.y.Home(), "bin")+":"+os.Getenv("PATH"),
		"XDG_CACHE_HOME="+filepath.Join(l.own, "cache"), "MUSTER_AGENT_STATE_DIR="+filepath.Join(l.own, "state"))
	return cmd
}

// job is one app on YARN.
type job struct {
	*lab
	app, form string // form: service or shell
	id        string // of YARN's application
	args      []string
}

// submit has muster submit the package of handwriting from this machine, and this muster, by way of HDFS.
func (l *lab) submit(form, app string, args ...string) *job {
	return l.submitting(form, app, args...)()
}

// submitting begins to; what it returns waits until YARN has the application.
func (l *lab) submitting(form, app string, args ...string) func() *job {
	l.t.Helper()
	j := &job{lab: l, app: app, form: form, args: args}
	cmd := l.command(l.muster, append([]string{
		"submit", "yarn", "../../../packages/catalog/handwriting", "--format", form, "--app-id", app, "--run", "r1", "--registry", l.consul.URL(),
		"--store", l.dir + "/store", "--engine", "process",
	}, args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	submitting, err := leash.Start(cmd, 2*watchdog)
	if err != nil {
		l.t.Fatal(err)
	}
	return func() *job {
		l.t.Helper()
		err := submitting.Wait()
		if j.id = strings.TrimSpace(stdout.String()); err != nil || !applicationID.MatchString(j.id) {
			l.t.Fatalf("muster submit: %v, got %q, want an application's id\n%s", err, j.id, &stderr)
		}
		l.t.Cleanup(func() {
			if l.t.Failed() {
				l.t.Logf("%s\n%s", &stderr, l.y.Logs(j.id))
			}
		})
		return j
	}
}

var applicationID = regexp.MustCompile(`^application_\d+_\d+$`)

// ends waits for the application's end, in the first attempt of its master.
func (j *job) ends(want string) {
	j.t.Helper()
	j.endsAfter(want, 1)
}

func (j *job) endsAfter(want string, attempts int) {
	j.t.Helper()
	app := j.y.AwaitEnd(j.id)
	if got := j.y.Attempts(j.id); app.FinalStatus != want || got != attempts {
		j.t.Errorf("%s: got %+v after %d attempts, want %s after %d", j.app, app, got, want, attempts)
	}
}

// standing is what `muster status --json` says.
type standing struct {
	Run, Phase, Outcome string
	Verdict             *struct{ Class string }
	Generation          int
	Instances           []struct {
		Instance, Phase, Host string
		Exports               map[string]string
		Attempt               int
	}
}

func (j *job) status() standing {
	j.t.Helper()
	var s standing
	var out bytes.Buffer
	cmd := j.command(muster, "status", j.app, "--registry", j.consul.URL(), "--json")
	cmd.Stdout = &out
	err := leash.Run(cmd, watchdog)
	if err == nil {
		err = json.Unmarshal(out.Bytes(), &s)
	}
	if err != nil {
		return standing{Phase: err.Error()} // not there yet
	}
	return s
}

// await asks until see says yes. Consul and YARN could tell of changes of theirs; the files of containers could not.
func (l *lab) await(what string, see func() bool) {
	l.t.Helper()
	deadline := time.Now().Add(watchdog)
	for !see() {
		if time.Now().After(deadline) {
			l.t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// awaitPhase waits until status says so.
func (j *job) awaitPhase(phase string) standing {
	j.t.Helper()
	var s standing
	j.await(j.app+" to be "+phase, func() bool { s = j.status(); return s.Phase == phase })
	return s
}

// stored is the newest step of ps-0 that Consul knows to lie on HDFS, 0 without one.
func (j *job) stored() int {
	var record struct {
		Steps []struct {
			Step int
			URI  string
		}
	}
	resp, err := (&http.Client{Timeout: watchdog}).Get("http://" + j.consul.HTTPAddr + "/v1/kv/muster/" + j.app + "/checkpoint/ps/0?raw")
	if err != nil {
		j.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK || json.NewDecoder(resp.Body).Decode(&record) != nil || len(record.Steps) == 0 {
		return 0
	}
	last := record.Steps[len(record.Steps)-1]
	if !strings.HasPrefix(last.URI, j.dir+"/kept/"+j.app+"/ps-0/step-") {
		j.t.Fatalf("stored at %s", last.URI)
	}
	return last.Step
}

// logs are the files of a name that an instance has left in YARN's log folders, one of each container that ran it.
func (j *job) logs(instance, name string) []string {
	j.t.Helper()
	var found []string
	for _, folder := range j.y.LogFolders(j.id) {
		path := filepath.Join(folder, "muster", instance, name)
		if _, err := os.Stat(path); err == nil {
			found = append(found, path)
		}
	}
	slices.Sort(found)
	return found
}

func (l *lab) read(path string) string {
	l.t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		l.t.Fatal(err)
	}
	return string(text)
}

// processes are all on any host that are of this app or of its application: by what they were started with, and by where
// they stand.
func (j *job) processes() []int {
	var found []int
	for node := range 2 {
		for _, pid := range j.y.NodeProcesses(node) {
			if j.has(pid) {
				found = append(found, pid)
			}
		}
	}
	return found
}

func (j *job) has(pid int) bool {
	proc := fmt.Sprintf("/proc/%d/", pid)
	about, _ := os.Readlink(proc + "cwd")
	for _, name := range []string{"cmdline", "environ"} {
		text, _ := os.ReadFile(proc + name)
		about += "\x00" + string(text)
	}
	return strings.Contains(about, j.id) || strings.Contains(about, "\x00"+j.app+"\x00")
}
