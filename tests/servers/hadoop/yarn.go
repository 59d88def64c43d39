package hadoop

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/muster-agent/muster/tests/need"
	"github.com/muster-agent/muster/tests/servers/jail"
	claims "github.com/muster-agent/muster/tests/servers/ports"
)

// Nobody is the ordinary user that YARN's daemons and so its containers are of, as Debian numbers it.
const (
	Nobody   = "nobody"
	nobodyID = 65534
)

// Classes of YARN's that are run.
const (
	resourceManagerClass = "org.apache.hadoop.yarn.server.resourcemanager.ResourceManager"
	nodeManagerClass     = "org.apache.hadoop.yarn.server.nodemanager.NodeManager"
	zooKeeperClass       = "org.apache.zookeeper.server.ZooKeeperServerMain"
	shellClass           = "org.apache.hadoop.yarn.applications.distributedshell.Client"
)

// YARNOptions are a test's wishes; the zero value is two NodeManagers, a node being lost after 10 s.
type YARNOptions struct {
	// NodeManagers is how many there are; 0 means 2. Each grants 4 GB and 64 vcores.
	NodeManagers int
	// Site is further properties for yarn-site.xml; they win.
	Site map[string]string
	// Scheduler is further properties for capacity-scheduler.xml; they win.
	Scheduler map[string]string
	// Labels are node labels, by the number of the NodeManager that has it; others have none.
	Labels map[int]string
	// Visible are files and folders below root's home, which is closed to others, that containers are to find all the
	// same.
	Visible []string
	// GPUs is how many a NodeManager grants. Above 0 it is root's, and its containers are the ordinary user's by
	// LinuxContainerExecutor.
	GPUs int
}

// A YARN is a ResourceManager, NodeManagers and a ZooKeeper (for services) beside an HDFS. The daemons are an ordinary
// user's, containers are started by DefaultContainerExecutor and so of that user as well. Methods end the test on
// errors.
type YARN struct {
	// RM is HOST:PORT of the ResourceManager's REST.
	RM string
	// ConfDir holds the configuration of clients: HADOOP_CONF_DIR.
	ConfDir string
	// Dir holds configuration, logs and the NodeManagers' folders.
	Dir string

	t       testing.TB
	c       *Cluster
	options YARNOptions
	rm, zk  *jail.Process
	head    *jail.Jail
	nodes   []*nodeManager
	tickets string                    // cache of the ordinary user; empty: no Kerberos
	show    func(*http.Request) error // shows one; nil: no Kerberos
}

// nodeManager is one, as if on a host of its own: what it starts lives with it in a jail.
type nodeManager struct {
	dir   string
	ports []int // of its RPC, its localizer, its HTTP
	jail  *jail.Jail
	run   *jail.Process
}

// StartYARN starts a YARN on a cluster, behind its KDC where it has one, and returns when all NodeManagers are there. It is gone when
// the test ends, however it ends, with all that its containers run; the HDFS stays.
func (c *Cluster) StartYARN(t testing.TB, o YARNOptions) *YARN {
	t.Helper()
	need.Root(t)
	if c.home.yarnClasspath == "" {
		need.Skip(t, "no YARN at "+c.home.dir+" (get it with scripts/lab/hadoop build)")
	}
	if o.NodeManagers == 0 {
		o.NodeManagers = 2
	}
	dir, err := os.MkdirTemp("", "yarn-") //nolint:usetesting // short: commands of containers are long enough
	if err != nil {
		t.Fatal(err)
	}
	p := claims.Claim(t, 6+3*o.NodeManagers)
	y := &YARN{RM: local(p[0]), ConfDir: filepath.Join(dir, "conf"), Dir: dir, t: t, c: c, options: o}
	t.Cleanup(y.end) // after the jails'
	for i := range o.NodeManagers {
		y.nodes = append(y.nodes, &nodeManager{
			dir:   filepath.Join(dir, fmt.Sprintf("node-%d", i)),
			ports: p[6+3*i : 9+3*i],
		})
	}
	y.lay(p)
	y.head = jail.New(t)
	y.zk = y.start(y.head, "zookeeper", "64m", y.ConfDir, zooKeeperClass, fmt.Sprint(p[5]),
		filepath.Join(dir, "zookeeper"))
	y.rm = y.start(y.head, "resourcemanager", "320m", y.ConfDir, resourceManagerClass)
	for i := range y.nodes {
		y.boot(i)
	}
	if err := y.rm.Await(yarnWatchdog, func() error { return y.running(o.NodeManagers) }); err != nil {
		t.Fatal(err)
	}
	y.label()
	return y
}

// In is the same YARN for a subtest, which its methods end on errors.
func (y *YARN) In(t testing.TB) *YARN {
	own := *y
	own.t = t
	return &own
}

// lay writes configurations and makes folders, on HDFS the user's home.
func (y *YARN) lay(p []int) {
	y.t.Helper()
	site := y.site(p)
	queues := maps.Clone(scheduler)
	maps.Copy(queues, y.options.Scheduler)
	if y.c.KDC != nil {
		if err := y.secure(site); err != nil {
			y.t.Fatal(err)
		}
	}
	confs := map[string]map[string]string{y.ConfDir: nil}
	folders := []string{
		y.Dir, filepath.Join(y.Dir, "logs"), filepath.Join(y.Dir, "zookeeper"),
		filepath.Join(y.Dir, "tmp"),
	}
	for _, n := range y.nodes {
		confs[filepath.Join(n.dir, "conf")] = map[string]string{
			"yarn.nodemanager.address":           local(n.ports[0]),
			"yarn.nodemanager.localizer.address": local(n.ports[1]),
			"yarn.nodemanager.webapp.address":    local(n.ports[2]),
			"yarn.nodemanager.local-dirs":        filepath.Join(n.dir, "local"),
			"yarn.nodemanager.log-dirs":          filepath.Join(n.dir, "logs"),
			// containers have nothing of their NodeManager's environment but what is named
			"yarn.nodemanager.admin-env": strings.Join(append(y.java(),
				"MUSTER_AGENT_STATE_DIR="+filepath.Join(n.dir, "state")), ","),
		}
		folders = append(folders, n.dir, filepath.Join(n.dir, "local"), filepath.Join(n.dir, "logs"))
	}
	var err error
	for _, folder := range folders {
		err = errors.Join(err, os.MkdirAll(folder, 0o755), os.Chmod(folder, 0o755),
			os.Chown(folder, nobodyID, nobodyID))
	}
	for folder, own := range confs {
		all := maps.Clone(site)
		maps.Copy(all, own)
		err = errors.Join(err, os.CopyFS(folder, os.DirFS(y.c.ConfDir)),
			os.WriteFile(filepath.Join(folder, "yarn-site.xml"), siteXML(all), 0o644),
			os.WriteFile(filepath.Join(folder, "capacity-scheduler.xml"), siteXML(queues), 0o644))
	}
	if err != nil {
		y.t.Fatal(err)
	}
	if y.options.GPUs > 0 {
		if err := y.layExecutor(); err != nil {
			y.t.Fatal(err)
		}
	}
	home := "/user/" + Nobody
	y.c.web(y.t, home, url.Values{"op": {"MKDIRS"}})
	y.c.web(y.t, home, url.Values{"op": {"SETOWNER"}, "owner": {Nobody}})
	// a service's master keeps files of its containers below hadoop.tmp.dir, as a path of HDFS: that is
	// /tmp/hadoop-USER elsewhere
	y.c.web(y.t, filepath.Join(y.c.Dir, "tmp"), url.Values{"op": {"MKDIRS"}, "permission": {"777"}})
	y.layPrograms()
}

// scheduler is one queue, which application masters may fill.
var scheduler = map[string]string{
	"yarn.scheduler.capacity.root.queues":                 "default",
	"yarn.scheduler.capacity.root.default.capacity":       "100",
	"yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
	"yarn.scheduler.capacity.node-locality-delay":         "-1",
	"yarn.scheduler.capacity.resource-calculator": "org.apache.hadoop.yarn.util.resource." +
		"DominantResourceCalculator",
}

func (y *YARN) site(p []int) map[string]string {
	site := map[string]string{
		"yarn.resourcemanager.hostname":                           "localhost",
		"yarn.resourcemanager.webapp.address":                     local(p[0]),
		"yarn.resourcemanager.address":                            local(p[1]),
		"yarn.resourcemanager.scheduler.address":                  local(p[2]),
		"yarn.resourcemanager.resource-tracker.address":           local(p[3]),
		"yarn.resourcemanager.admin.address":                      local(p[4]),
		"yarn.resourcemanager.nodemanagers.heartbeat-interval-ms": "200",
		// a ResourceManager that begins late is found soon
		"yarn.resourcemanager.connect.retry-interval.ms":     "1000",
		"yarn.resourcemanager.placement-constraints.handler": "scheduler",
		"yarn.nm.liveness-monitor.expiry-interval-ms":        "10000",
		"yarn.am.liveness-monitor.expiry-interval-ms":        "60000",
		"yarn.scheduler.minimum-allocation-mb":               "64",
		"yarn.scheduler.maximum-allocation-mb":               "4096",
		"yarn.nodemanager.resource.memory-mb":                "4096",
		"yarn.nodemanager.resource.cpu-vcores":               "64",
		"yarn.nodemanager.vmem-check-enabled":                "false",
		"yarn.nodemanager.disk-health-checker.enable":        "false",
		"yarn.nodemanager.container-monitor.interval-ms":     "1000",
		"yarn.application.classpath":                         y.c.home.yarnClasspath + ":" + y.ConfDir,
		"yarn.webapp.api-service.enable":                     "true",
		// a service's master has the ResourceManager's class path, not jars from HDFS
		"yarn.is.minicluster":             "true",
		"hadoop.registry.zk.quorum":       local(p[5]),
		"yarn.service.am-resource.memory": "256",
		"yarn.service.am.java.opts": "-Xmx160m -XX:TieredStopAtLevel=1 " +
			"--add-opens=java.base/java.lang=ALL-UNNAMED",
		"hadoop.http.authentication.simple.anonymous.allowed": "true",
	}
	// A NodeManager that is told not to look at its disks looks once, and takes no folder of a disk that is fuller than
	// nine tenths.
	site["yarn.nodemanager.disk-health-checker.max-disk-utilization-per-disk-percentage"] = "100"
	if len(y.options.Labels) > 0 {
		site["yarn.node-labels.enabled"] = "true"
		site["yarn.node-labels.fs-store.root-dir"] = "file://" + filepath.Join(y.Dir, "labels")
	}
	if y.options.GPUs > 0 {
		maps.Copy(site, y.executorSite())
	}
	maps.Copy(site, y.options.Site)
	return site
}

// boot starts a NodeManager in a jail of its own, with the folders that it had before. Agents have their state there,
// as on a host of their own.
func (y *YARN) boot(i int) {
	y.t.Helper()
	n := y.nodes[i]
	n.jail = jail.New(y.t)
	n.run = y.start(n.jail, filepath.Base(n.dir), "256m", filepath.Join(n.dir, "conf"), nodeManagerClass)
}

// asNobody runs a program as the ordinary user. Root's home is closed to him: he sees an empty one with what is shown
// to him.
const asNobody = `set -e
while [ "$1" != -- ]; do
	case $1 in "$HOME"/*)
		at=$(mktemp -d)
		if [ -d "$1" ]; then mount --bind "$1" "$at"; else rmdir "$at"; : >"$at"; mount --bind "$1" "$at"; fi
		shown="$shown $at $1" ;;
	esac
	shift
done
shift
if [ -n "$shown" ]; then
	mount -t tmpfs -o mode=755 tmpfs "$HOME"
	set -- $shown -- "$@"
	while [ "$1" != -- ]; do
		if [ -d "$1" ]; then mkdir -p "$2"; else mkdir -p "$(dirname "$2")"; : >"$2"; fi
		mount --bind "$1" "$2"
		umount "$1"
		rmdir "$1" 2>/dev/null || rm -f "$1"
		shift 2
	done
	shift
fi
` + becomeNobody

const becomeNobody = `cd /
exec setpriv --reuid nobody --regid nogroup --clear-groups env HOME=/nonexistent USER=nobody LOGNAME=nobody "$@"`

// start starts a class as the ordinary user.
func (y *YARN) start(j *jail.Jail, name, heap, conf, class string, args ...string) *jail.Process {
	y.t.Helper()
	as := asNobody
	if y.options.GPUs > 0 && class == nodeManagerClass {
		as = y.asRoot()
	}
	words := []string{"-c", as, "as-nobody", y.c.home.dir}
	words = append(append(words, y.options.Visible...), "--", y.c.home.java)
	if j == y.head && y.zk != nil {
		words = append([]string{"-c", asNobody, "as-nobody", "--"}, y.c.home.java) // the jail has been laid out
	}
	properties := append(y.c.properties(), "-Dmuster.log=INFO", "-Djava.io.tmpdir="+filepath.Join(y.Dir, "tmp"),
		// its port would be 8080, and that of one cluster at a time
		"-Dzookeeper.admin.enableServer=false")
	words = append(append(words, y.c.home.yarnArgs(heap, conf, class, properties...)...), args...)
	cmd := exec.Command("/bin/sh", words...)
	cmd.Env = append(y.c.Environ(), "HADOOP_CONF_DIR="+conf, "JAVA_HOME="+filepath.Dir(filepath.Dir(y.c.home.java)))
	p, err := j.Start(cmd, filepath.Join(y.Dir, "logs", name+".log"))
	if err != nil {
		y.t.Fatal(err)
	}
	return p
}

// running fails while there are not so many NodeManagers.
func (y *YARN) running(want int) error {
	var answer struct {
		Nodes struct{ Node []struct{ State string } }
	}
	if err := y.get("/ws/v1/cluster/nodes", &answer); err != nil {
		return err
	}
	got := 0
	for _, n := range answer.Nodes.Node {
		if n.State == "RUNNING" {
			got++
		}
	}
	if got != want {
		return fmt.Errorf("%d of %d NodeManagers run", got, want)
	}
	return nil
}

// end is the clean-up.
func (y *YARN) end() {
	if y.t.Failed() {
		logs, _ := filepath.Glob(filepath.Join(y.Dir, "logs", "*.log"))
		for _, path := range logs {
			text, _ := os.ReadFile(path)
			y.t.Logf("the end of %s:\n%s", path, strings.ToValidUTF8(string(text[max(0, len(text)-3000):]), "?"))
		}
	}
	if err := os.RemoveAll(y.Dir); err != nil {
		y.t.Errorf("what YARN left: %v", err)
	}
}

// KillNode takes a host away: its NodeManager and all containers on it die at once. The ResourceManager misses it after
// 10 s.
func (y *YARN) KillNode(i int) { y.nodes[i].jail.Kill() }

// KillNodeManager ends a NodeManager by SIGKILL; its containers run on.
func (y *YARN) KillNodeManager(i int) { y.nodes[i].run.Kill() }

// StopNodeManager ends a NodeManager by SIGTERM: it ends its containers.
func (y *YARN) StopNodeManager(i int) {
	y.t.Helper()
	if err := y.nodes[i].run.End(syscall.SIGTERM); err != nil {
		y.t.Fatal(err)
	}
}

// StartNode starts a host again that was killed, and waits for its NodeManager.
func (y *YARN) StartNode(i int) {
	y.t.Helper()
	y.nodes[i].jail.Kill() // containers that are left belong to a host that is gone
	up := 1
	for _, n := range y.nodes {
		if n.run.Running() {
			up++
		}
	}
	y.boot(i)
	if err := y.nodes[i].run.Await(watchdog, func() error { return y.running(up) }); err != nil {
		y.t.Fatal(err)
	}
}

// AwaitNodes waits until the ResourceManager knows so many NodeManagers that run: one that was killed is lost after a
// while.
func (y *YARN) AwaitNodes(n int) {
	y.t.Helper()
	if err := y.rm.Await(watchdog, func() error { return y.running(n) }); err != nil {
		y.t.Fatal(err)
	}
}

// Resize has a host grant so much memory from now on; what runs there runs on. An application that finds room on one
// host only has its containers there.
func (y *YARN) Resize(i, megabytes int) {
	y.t.Helper()
	path := "/ws/v1/cluster/nodes/" + local(y.nodes[i].ports[0])
	body := fmt.Sprintf(`{"resource":{"memory":%d,"vCores":64},"overCommitTimeout":-1}`, megabytes)
	// A ResourceManager that has just begun takes nodes before it takes orders, and answers with an error in a good
	// answer.
	err := y.rm.Await(watchdog, func() error {
		if err := y.ask(http.MethodPost, path+"/resource", []byte(body), nil); err != nil {
			return err
		}
		var answer struct {
			Node struct{ TotalResource struct{ Memory int } }
		}
		if err := y.get(path, &answer); err != nil {
			return err
		}
		if got := answer.Node.TotalResource.Memory; got != megabytes {
			return fmt.Errorf("host %d grants %d MB, want %d", i, got, megabytes)
		}
		return nil
	})
	if err != nil {
		y.t.Fatal(err)
	}
}

// ContainerProcesses are the pids, as this test sees them, of a container's processes on whatever node.
func (y *YARN) ContainerProcesses(container string) []int {
	var pids []int
	for _, n := range y.nodes {
		pids = append(pids, n.jail.ProcessesWith("CONTAINER_ID="+container)...)
	}
	return pids
}

// NodeProcesses are the pids, as this test sees them, of all on a node but its NodeManager.
func (y *YARN) NodeProcesses(i int) []int {
	var pids []int
	for _, pid := range y.nodes[i].jail.Processes() {
		if pid != y.nodes[i].run.PID {
			pids = append(pids, pid)
		}
	}
	return pids
}

// yarnWatchdog bounds waits for what YARN does, which takes its time.
const yarnWatchdog = 5 * time.Minute
