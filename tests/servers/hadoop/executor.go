package hadoop

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/tests/need"
)

//go:embed container-executor
var containerExecutor string

// deviceGroups are where cgroup v1 has its rules of devices.
const deviceGroups = "/sys/fs/cgroup/devices"

// FirstGPU is the minor number of the first GPU that a NodeManager grants; no other test has devices of its kind.
const FirstGPU = 700

// layExecutor has NodeManagers of root start containers by LinuxContainerExecutor, as the ordinary user, and grant GPUs
// of which there are the nodes alone, /dev/nvidia700 and the following. What they have in the place of Hadoop's native
// program speaks its words.
func (y *YARN) layExecutor() error {
	if _, err := os.Stat(filepath.Join(deviceGroups, "tasks")); err != nil {
		need.Skip(y.t, "needs the devices of cgroup v1: "+err.Error())
	}
	hierarchy := filepath.Base(y.Dir)
	group := filepath.Join(deviceGroups, hierarchy)
	if err := os.Mkdir(group, 0o755); err != nil {
		need.Skip(y.t, "needs a cgroup that it may make: "+err.Error())
	}
	y.t.Cleanup(func() {
		left, _ := filepath.Glob(filepath.Join(group, "container_*"))
		for _, path := range append(left, group) {
			if err := os.Remove(path); err != nil {
				y.t.Errorf("what YARN left: %v", err)
			}
		}
	})
	program := strings.NewReplacer("HIERARCHY", hierarchy, "ROOT", y.Dir).Replace(containerExecutor)
	return os.WriteFile(y.executor(), []byte(program), 0o755) //nolint:gosec // it is run
}

func (y *YARN) executor() string { return filepath.Join(y.Dir, "container-executor") }

// executorSite are the properties of such a cluster.
func (y *YARN) executorSite() map[string]string {
	var devices []string
	for i := range y.options.GPUs {
		devices = append(devices, fmt.Sprintf("%d:%d", i, FirstGPU+i))
	}
	return map[string]string{
		"yarn.resource-types":                                       "yarn.io/gpu",
		"yarn.nodemanager.resource-plugins":                         "yarn.io/gpu",
		"yarn.nodemanager.resource-plugins.gpu.allowed-gpu-devices": strings.Join(devices, ","),
		"yarn.nodemanager.container-executor.class": "org.apache.hadoop.yarn.server.nodemanager." +
			"LinuxContainerExecutor",
		"yarn.nodemanager.linux-container-executor.path":                      y.executor(),
		"yarn.nodemanager.linux-container-executor.group":                     "root",
		"yarn.nodemanager.linux-container-executor.nonsecure-mode.local-user": Nobody,
		"yarn.nodemanager.linux-container-executor.cgroups.hierarchy":         "/" + filepath.Base(y.Dir),
		"yarn.nodemanager.linux-container-executor.cgroups.mount":             "false",
		"yarn.nodemanager.linux-container-executor.cgroups.mount-path":        "/sys/fs/cgroup",
	}
}

// GrantedGPUs are the minor numbers of the GPUs that a NodeManager says its containers have.
func (y *YARN) GrantedGPUs(i int) []int {
	y.t.Helper()
	var answer struct {
		AssignedGpuDevices []struct{ MinorNumber int }
	}
	resp, err := http.Get("http://" + local(y.nodes[i].ports[2]) + "/ws/v1/node/resources/yarn.io%2Fgpu")
	if err != nil {
		y.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		y.t.Fatal(err)
	}
	var minors []int
	for _, d := range answer.AssignedGpuDevices {
		minors = append(minors, d.MinorNumber)
	}
	return minors
}

// withGPUs begins a NodeManager of root: a /dev of its host's own, with so many nodes of GPUs.
const withGPUs = `at=$(mktemp -d)
mount -t tmpfs -o mode=755 tmpfs "$at"
cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty "$at"
ln -s /proc/self/fd "$at/fd"
mkdir -m 1777 "$at/shm"
mknod -m 666 "$at/nvidiactl" c 195 255
i=FIRST
while [ "$i" -lt LAST ]; do
	mknod -m 666 "$at/nvidia$i" c 195 "$i"
	i=$((i + 1))
done
mount --move "$at" /dev
rmdir "$at"
cd /
exec "$@"`

// asRoot is asNobody of a NodeManager that has to be root's.
func (y *YARN) asRoot() string {
	first, last := strconv.Itoa(FirstGPU), strconv.Itoa(FirstGPU+y.options.GPUs)
	return strings.Replace(asNobody, becomeNobody, strings.NewReplacer("FIRST", first, "LAST", last).Replace(withGPUs), 1)
}
