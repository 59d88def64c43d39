package gpu

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Injection is what a container must get so that its process can use devices, and no others.
type Injection struct {
	Source string `json:"source"` // "CDI /etc/cdi/nvidia.yaml" or "device nodes"
	// Nodes are to be made and allowed by the device rules: exactly these, to read and to write.
	Nodes  []cdiNode         `json:"nodes"`
	Mounts []cdiMount        `json:"mounts,omitempty"`
	Env    map[string]string `json:"env,omitempty"` // beneath Env's and the job's own
	Hooks  []cdiHook         `json:"hooks,omitempty"`
	GIDs   []uint32          `json:"gids,omitempty"` // further groups of the process
	// LibraryDirs are folders of mounted libraries, which the image's own loader may not search: for LD_LIBRARY_PATH.
	LibraryDirs []string `json:"library_dirs,omitempty"`
	Warnings    []string `json:"warnings,omitempty"`
}

// cdiNode is a device node. HostPath is where the host has it, Path where the container expects it.
type cdiNode struct {
	Path     string      `json:"path"`
	HostPath string      `json:"host_path"`
	Type     string      `json:"type"` // c or b
	Major    int64       `json:"major"`
	Minor    int64       `json:"minor"`
	Mode     os.FileMode `json:"mode"` // permissions
	UID      uint32      `json:"uid"`
	GID      uint32      `json:"gid"`
}

// cdiMount is a bind mount of a file or folder of the host.
type cdiMount struct {
	From     string   `json:"from"`
	To       string   `json:"to"`
	ReadOnly bool     `json:"read_only"`
	Options  []string `json:"options,omitempty"`
}

// cdiHook is a program of the host that an OCI runtime runs at a stage of the container's life. Env is all that it may
// see: an image's or job's variables never reach a program outside the container (CVE-2025-23266), and it is never
// empty, which a runtime would take for the agent's own.
type cdiHook struct {
	Stage   string        `json:"stage"` // createRuntime, createContainer, …
	Path    string        `json:"path"`
	Args    []string      `json:"args"` // with the program's name
	Env     []string      `json:"env"`
	Timeout time.Duration `json:"timeout,omitempty"`
}

// InjectOptions say where to look.
type InjectOptions struct {
	// CDIDirs hold CDI specs, the last one wins; nil: /etc/cdi and /var/run/cdi.
	CDIDirs []string
	Root    string // the host's; "": /
	// Image says that the container has a root of its own, without the driver's files.
	Image bool
}

// Inject is by a CDI spec for nvidia.com/gpu where one describes the devices as they are, else by device nodes and, for
// an image, the driver's libraries and tools. Why a spec was not taken is in the warnings.
func Inject(ctx context.Context, devices []Device, o InjectOptions) (Injection, error) {
	if o.Root == "" {
		o.Root = "/"
	}
	if len(devices) == 0 {
		return Injection{Source: "nothing"}, nil
	}
	in, reasons, found := injectCDI(ctx, devices, o)
	if !found {
		var err error
		if in, err = injectNodes(devices, o); err != nil {
			return Injection{}, fmt.Errorf("inject GPUs: %w", errors.Join(err, joined(reasons)))
		}
	}
	in.Warnings = append(reasons, in.Warnings...)
	return in, nil
}

func joined(reasons []string) error {
	var errs []error
	for _, r := range reasons {
		errs = append(errs, errors.New(r))
	}
	return errors.Join(errs...)
}

// The nodes that all CUDA processes need, and those that they use if they are there.
var (
	controlNodes = []string{"/dev/nvidiactl", "/dev/nvidia-uvm"}
	furtherNodes = []string{"/dev/nvidia-uvm-tools", "/dev/nvidia-modeset"}
)

func injectNodes(devices []Device, o InjectOptions) (Injection, error) {
	in := Injection{Source: "device nodes"}
	for _, d := range devices {
		if d.Minor < 0 {
			return in, fmt.Errorf("%s: its device node is not known; a CDI spec would name it "+
				"(nvidia-ctk cdi generate)", d)
		}
		paths := []string{"/dev/nvidia" + strconv.Itoa(d.Minor)}
		if d.Instance != nil {
			caps, err := capabilities(o.Root, d)
			if err != nil {
				return in, err
			}
			paths = append(paths, caps...)
		}
		for _, path := range paths {
			node, err := nodeAt(o.Root, path)
			if err != nil {
				return in, fmt.Errorf("%s: %w", d, err)
			}
			in.addNode(node)
		}
	}
	for _, path := range slices.Concat(controlNodes, furtherNodes) {
		node, err := nodeAt(o.Root, path)
		switch {
		case err == nil:
			in.addNode(node)
		case slices.Contains(controlNodes, path):
			in.Warnings = append(in.Warnings, fmt.Sprintf("no %s: CUDA will not start; make it with nvidia-modprobe "+
				"-u -c=0", path))
		}
	}
	if o.Image {
		in.addDriverFiles(o.Root)
	}
	return in, nil
}

// capabilities are the nodes that open a MIG instance: of its GPU instance and of its compute instance.
func capabilities(root string, d Device) ([]string, error) {
	base := fmt.Sprintf("proc/driver/nvidia/capabilities/gpu%d/mig/gi%d", d.Minor, d.Instance.GPUInstance)
	var out []string
	for _, file := range []string{base + "/access", fmt.Sprintf("%s/ci%d/access", base, d.Instance.ComputeInstance)} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d, err)
		}
		m := capabilityMinor.FindSubmatch(text)
		if m == nil {
			return nil, fmt.Errorf("%s: read /%s: no DeviceFileMinor", d, file)
		}
		out = append(out, "/dev/nvidia-caps/nvidia-cap"+string(m[1]))
	}
	return out, nil
}

var capabilityMinor = regexp.MustCompile(`DeviceFileMinor:\s*(\d+)`)

// nodeAt describes a device node of the host. A symbolic link is none.
func nodeAt(root, path string) (cdiNode, error) {
	at := filepath.Join(root, path)
	var st unix.Stat_t
	if err := unix.Lstat(at, &st); err != nil {
		return cdiNode{}, fmt.Errorf("device node %s: %w", path, err)
	}
	kind := ""
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFCHR:
		kind = "c"
	case unix.S_IFBLK:
		kind = "b"
	default:
		return cdiNode{}, fmt.Errorf("device node %s: is none", path)
	}
	return cdiNode{
		Path: path, HostPath: at, Type: kind, Major: int64(unix.Major(st.Rdev)), Minor: int64(unix.Minor(st.Rdev)),
		Mode: os.FileMode(st.Mode & 0o777), UID: st.Uid, GID: st.Gid,
	}, nil
}

func (in *Injection) addNode(n cdiNode) {
	if !slices.ContainsFunc(in.Nodes, func(o cdiNode) bool { return o.Path == n.Path }) {
		in.Nodes = append(in.Nodes, n)
	}
}

func (in *Injection) addMount(m cdiMount) {
	if !slices.ContainsFunc(in.Mounts, func(o cdiMount) bool { return o.To == m.To }) {
		in.Mounts = append(in.Mounts, m)
	}
}
