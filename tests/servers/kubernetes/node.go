package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	"go.opentelemetry.io/otel/trace/noop"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	apitest "k8s.io/cri-api/pkg/apis/testing"
	kubeletapp "k8s.io/kubernetes/cmd/kubelet/app"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/kubelet"
	cadvisortest "k8s.io/kubernetes/pkg/kubelet/cadvisor/testing"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/container"
	kubeletutil "k8s.io/kubernetes/pkg/kubelet/util"
	"k8s.io/kubernetes/pkg/util/oom"
	"k8s.io/kubernetes/pkg/volume"
	"k8s.io/kubernetes/pkg/volume/configmap"
	"k8s.io/kubernetes/pkg/volume/downwardapi"
	"k8s.io/kubernetes/pkg/volume/emptydir"
	"k8s.io/kubernetes/pkg/volume/projected"
	"k8s.io/kubernetes/pkg/volume/secret"
	"k8s.io/kubernetes/pkg/volume/util/hostutil"
	"k8s.io/kubernetes/pkg/volume/util/subpath"
	"k8s.io/mount-utils"
)

const nodeName = "node"

// startNode starts the kubelet and returns when its node takes pods. Cgroups and devices are not managed: the node says
// that it has 64 processors, 256 GiB and 8 GPUs, and holds nobody to a share of them.
func startNode(ctx context.Context, config *rest.Config, dir string, ended chan<- error) error {
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	flags := options.NewKubeletFlags()
	flags.RootDirectory, flags.HostnameOverride = filepath.Join(dir, "kubelet"), nodeName
	c, err := options.NewKubeletConfiguration()
	if err != nil {
		return err
	}
	c.EnableServer, c.CgroupsPerQOS, c.EnforceNodeAllocatable = false, false, nil
	c.FailCgroupV1, c.LocalStorageCapacityIsolation = false, false
	c.ReadOnlyPort, c.HealthzPort = 0, 0
	c.PodLogsDir, c.MaxPods, c.RegisterNode = filepath.Join(dir, "logs"), 500, true
	for _, at := range []string{flags.RootDirectory, c.PodLogsDir} {
		if err := os.MkdirAll(at, 0o750); err != nil {
			return err
		}
	}
	var plugins []volume.VolumePlugin
	for _, some := range [][]volume.VolumePlugin{
		emptydir.ProbeVolumePlugins(), secret.ProbeVolumePlugins(), configmap.ProbeVolumePlugins(),
		downwardapi.ProbeVolumePlugins(), projected.ProbeVolumePlugins(),
	} {
		plugins = append(plugins, some...)
	}
	gpus := corev1.ResourceList{"nvidia.com/gpu": resource.MustParse("8")}
	if err := kubeletapp.RunKubelet(ctx, &options.KubeletServer{KubeletFlags: *flags, KubeletConfiguration: *c},
		&kubelet.Dependencies{
			KubeClient: client, HeartbeatClient: client, Recorder: new(record.FakeRecorder),
			RemoteRuntimeService: newRuntime(filepath.Join(dir, "containers")),
			RemoteImageService:   apitest.NewFakeImageService(),
			CAdvisorInterface:    machine{Fake: new(cadvisortest.Fake)},
			ContainerManager:     cm.NewStubContainerManagerWithDevicePluginResource(gpus),
			OSInterface:          files{dir: dir}, OOMAdjuster: oom.NewFakeOOMAdjuster(),
			Mounter: mount.New(""), Subpather: subpath.New(mount.New("")), HostUtil: hostutil.NewHostUtil(),
			VolumePlugins:             plugins,
			PodStartupLatencyTracker:  kubeletutil.NewPodStartupLatencyTracker(),
			NodeStartupLatencyTracker: kubeletutil.NewNodeStartupLatencyTracker(),
			TracerProvider:            noop.NewTracerProvider(),
		}); err != nil {
		return err
	}
	return await(ctx, "the node takes pods", func() error {
		node, err := client.CoreV1().Nodes().Get(ctx, nodeName, metav1.GetOptions{})
		if err != nil {
			return fmt.Errorf("node %s: %w", nodeName, err)
		}
		return nodeReady(node)
	})
}

// machine is what the node says that it has.
type machine struct{ *cadvisortest.Fake }

func (machine) MachineInfo() (*cadvisorapi.MachineInfo, error) {
	return &cadvisorapi.MachineInfo{NumCores: 64, MemoryCapacity: 256 << 30}, nil
}

// files keeps the kubelet from what lies outside its folder: it makes links in /var/log/containers for those that gather
// logs, and would remove by name what is no container's.
type files struct {
	container.RealOS
	dir string
}

func (f files) Remove(path string) error {
	if err := f.own(path); err != nil {
		return err
	}
	return f.RealOS.Remove(path)
}

func (f files) RemoveAll(path string) error {
	if err := f.own(path); err != nil {
		return err
	}
	return f.RealOS.RemoveAll(path)
}

// own says of what lies elsewhere that it is not there.
func (f files) own(path string) error {
	if !strings.HasPrefix(filepath.Clean(path), f.dir+"/") {
		return &fs.PathError{Op: "remove", Path: path, Err: fs.ErrNotExist}
	}
	return nil
}

func (f files) MkdirAll(path string, perm os.FileMode) error {
	if strings.HasPrefix(path, "/var/log/") {
		return nil
	}
	return f.RealOS.MkdirAll(path, perm)
}

func (files) Symlink(string, string) error { return nil }
