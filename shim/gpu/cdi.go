package gpu

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"tags.cncf.io/container-device-interface/pkg/cdi"

	"github.com/muster-agent/muster/shim/ownfolder"
)

const (
	cdiVendor = "nvidia.com"
	cdiClass  = "gpu"
)

// injectCDI takes the specs that name all devices. found is false if there are none or one of them cannot be used; the
// reasons say why.
func injectCDI(ctx context.Context, devices []Device, o InjectOptions) (in Injection, reasons []string, found bool) {
	dirs := o.CDIDirs
	if dirs == nil {
		dirs = []string{filepath.Join(o.Root, "etc/cdi"), filepath.Join(o.Root, "var/run/cdi")}
	}
	cache, err := cdi.NewCache(cdi.WithSpecDirs(dirs...), cdi.WithAutoRefresh(false))
	if err != nil {
		return in, []string{"CDI: " + err.Error()}, false
	}
	for path, errs := range cache.GetErrors() {
		for _, err := range errs {
			reasons = append(reasons, fmt.Sprintf("CDI spec %s: %v", path, err))
		}
	}
	slices.Sort(reasons)
	if !slices.ContainsFunc(cache.GetVendorSpecs(cdiVendor), func(s *cdi.Spec) bool {
		return s.GetClass() == cdiClass
	}) {
		return in, reasons, false
	}
	r := cdiReader{options: o, used: map[string]bool{}, in: Injection{Env: map[string]string{}}}
	for _, d := range devices {
		if err := r.device(cache, d); err != nil {
			return in, append(reasons, fmt.Sprintf("CDI: %v; device nodes instead", err)), false
		}
	}
	if err := r.exactly(devices); err != nil {
		return in, append(reasons, fmt.Sprintf("CDI: %v: generate the spec again (nvidia-ctk cdi generate); device "+
			"nodes instead", err)), false
	}
	r.in.Source = "CDI " + strings.Join(slices.Sorted(maps.Keys(r.used)), ", ")
	r.checkToolkit(ctx)
	return r.in, reasons, true
}

type cdiReader struct {
	options InjectOptions
	used    map[string]bool // paths of specs
	in      Injection
}

// device adds what the specs say about one device, and what they say for all of theirs.
func (r *cdiReader) device(cache *cdi.Cache, d Device) error {
	entry := entryOf(cache, d)
	if entry == nil {
		return fmt.Errorf("no spec names %s: generate it again (nvidia-ctk cdi generate)", d)
	}
	spec := entry.GetSpec()
	path := spec.GetPath()
	if !r.used[path] {
		if err := ownfolder.Trusted(path, os.Geteuid()); err != nil {
			return fmt.Errorf("spec %s: %w", path, err)
		}
		r.used[path] = true
		if err := r.edits(cdi.ContainerEdits{ContainerEdits: &spec.ContainerEdits}); err != nil {
			return fmt.Errorf("spec %s: %w", path, err)
		}
	}
	if err := r.edits(cdi.ContainerEdits{ContainerEdits: &entry.ContainerEdits}); err != nil {
		return fmt.Errorf("spec %s: device %s: %w", path, entry.Name, err)
	}
	return nil
}

// exactly refuses what would open another GPU than those that were claimed, or not all of them: an index in a spec is
// of the day when it was written.
func (r *cdiReader) exactly(devices []Device) error {
	want := map[string]bool{}
	for _, d := range devices {
		if d.Minor < 0 {
			return nil // unknown
		}
		want["/dev/nvidia"+strconv.Itoa(d.Minor)] = true
	}
	found := map[string]bool{}
	for _, n := range r.in.Nodes {
		host := "/" + strings.TrimPrefix(strings.TrimPrefix(n.HostPath, r.options.Root), "/")
		if !gpuNode.MatchString(host) {
			continue
		}
		if !want[host] {
			return fmt.Errorf("a spec names %s, which is not granted", host)
		}
		found[host] = true
	}
	for host := range want {
		if !found[host] {
			return fmt.Errorf("no spec names %s", host)
		}
	}
	return nil
}

var gpuNode = regexp.MustCompile(`^/dev/nvidia\d+$`)

// entryOf finds the device by UUID, else by index: nvidia-ctk writes either, by default both.
func entryOf(cache *cdi.Cache, d Device) *cdi.Device {
	names := []string{d.ID(), strconv.Itoa(d.Index)}
	if d.Instance != nil {
		names[1] = fmt.Sprintf("%d:%d", d.Index, d.Instance.Index)
	}
	for _, name := range names {
		if e := cache.GetDevice(cdiVendor + "/" + cdiClass + "=" + name); e != nil {
			return e
		}
	}
	return nil
}

func (r *cdiReader) edits(e cdi.ContainerEdits) error {
	for _, n := range e.DeviceNodes {
		if err := r.node(cdi.DeviceNode{DeviceNode: n}); err != nil {
			return err
		}
	}
	for _, env := range e.Env {
		name, value, _ := strings.Cut(env, "=")
		r.in.Env[name] = value
	}
	r.in.GIDs = append(r.in.GIDs, e.AdditionalGIDs...)
	if e.IntelRdt != nil || len(e.NetDevices) > 0 {
		r.in.Warnings = append(r.in.Warnings, "CDI: cache partitions and network devices of the spec are left out")
	}
	if !r.options.Image { // the host's root has the files, in their places
		return nil
	}
	for _, m := range e.Mounts {
		from := filepath.Join(r.options.Root, m.HostPath)
		if _, err := os.Stat(from); err != nil {
			return fmt.Errorf("it is stale: %w", err)
		}
		options := m.Options
		if len(options) == 0 {
			options = []string{"bind"}
		}
		r.in.addMount(cdiMount{
			From: from, To: m.ContainerPath, ReadOnly: slices.Contains(options, "ro"),
			Options: options,
		})
	}
	for _, h := range e.Hooks {
		if err := r.hook(cdi.Hook{Hook: h}); err != nil {
			return err
		}
	}
	return nil
}

func (r *cdiReader) node(n cdi.DeviceNode) error {
	host := n.HostPath
	if host == "" {
		host = n.Path
	}
	// The numbers of the node as it is now: those of a spec can be of an earlier start of the host.
	node, err := nodeAt(r.options.Root, host)
	if err != nil {
		return fmt.Errorf("it is stale: %w", err)
	}
	node.Path = n.Path
	if n.FileMode != nil {
		node.Mode = *n.FileMode & os.ModePerm
	}
	if n.UID != nil {
		node.UID = *n.UID
	}
	if n.GID != nil {
		node.GID = *n.GID
	}
	r.in.addNode(node)
	return nil
}

func (r *cdiReader) hook(h cdi.Hook) error {
	path := filepath.Join(r.options.Root, h.Path)
	if err := ownfolder.Trusted(path, os.Geteuid()); err != nil {
		return fmt.Errorf("hook %s: %w", h.Path, err)
	}
	hook := cdiHook{Stage: h.HookName, Path: path, Args: h.Args, Env: hookEnv(h.Env)}
	if h.Timeout != nil {
		hook.Timeout = time.Duration(*h.Timeout) * time.Second
	}
	same := func(o cdiHook) bool {
		return o.Stage == hook.Stage && o.Path == hook.Path && slices.Equal(o.Args, hook.Args)
	}
	if !slices.ContainsFunc(r.in.Hooks, same) {
		r.in.Hooks = append(r.in.Hooks, hook)
	}
	return nil
}

// hookEnv is the spec's own, less what steers the loader, and a PATH.
func hookEnv(env []string) []string {
	out := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
	for _, e := range env {
		name, _, _ := strings.Cut(e, "=")
		switch {
		case strings.HasPrefix(name, "LD_"), name == "GCONV_PATH", name == "GLIBC_TUNABLES":
		case name == "PATH":
			out[0] = e
		default:
			out = append(out, e)
		}
	}
	return out
}

// toolkitFloor is the oldest NVIDIA container toolkit that draws no warning. 1.17.8 closed CVE-2025-23266 and
// CVE-2025-23267. CVE-2026-24260 is of July 2026; which release closed it is not known here, so the floor is
// the release that muster's own library is of.
var toolkitFloor = [3]int{1, 20, 1}

var toolkitVersion = regexp.MustCompile(`version v?(\d+)\.(\d+)\.(\d+)`)

// checkToolkit warns of hooks of an NVIDIA container toolkit that is too old. One that does not tell its version is
// let pass: it may be a distribution's, mended there.
func (r *cdiReader) checkToolkit(ctx context.Context) {
	asked := map[string]bool{}
	for _, h := range r.in.Hooks {
		name := filepath.Base(h.Path)
		if asked[h.Path] || !strings.HasPrefix(name, "nvidia-") {
			continue
		}
		asked[h.Path] = true
		if v, ok := versionOf(ctx, h); ok && slices.Compare(v[:], toolkitFloor[:]) < 0 {
			r.in.Warnings = append(r.in.Warnings, fmt.Sprintf(
				"%s is of NVIDIA container toolkit %d.%d.%d, by which an image may reach the host (CVE-2025-23266 "+
					"before 1.17.8; CVE-2026-24260 in later ones, too): install %d.%d.%d or later",
				h.Path, v[0], v[1], v[2], toolkitFloor[0], toolkitFloor[1], toolkitFloor[2]))
		}
	}
}

func versionOf(ctx context.Context, h cdiHook) (v [3]int, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.Path, "--version")
	cmd.Env, cmd.WaitDelay = hookEnv(nil), time.Second
	out, err := cmd.Output()
	if err != nil {
		return v, false
	}
	m := toolkitVersion.FindSubmatch(out)
	if m == nil {
		return v, false
	}
	for i := range v {
		v[i], _ = strconv.Atoi(string(m[i+1]))
	}
	return v, true
}
