package gpu

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func paths(in Injection) string {
	var out []string
	for _, n := range in.Nodes {
		out = append(out, fmt.Sprintf("%s %s %d:%d", n.Path, n.Type, n.Major, n.Minor))
	}
	return strings.Join(out, "\n")
}

func devicesOf(t *testing.T, root string) []Device {
	t.Helper()
	devices, err := nodeDevices(root)
	if err != nil {
		t.Fatal(err)
	}
	return devices
}

func TestInjectNodes(t *testing.T) {
	root := driverRoot(t)
	in, err := Inject(t.Context(), devicesOf(t, root)[:1], InjectOptions{Root: root})
	if err != nil {
		t.Fatal(err)
	}
	want := "/dev/nvidia1 c 195:1\n/dev/nvidiactl c 195:255\n/dev/nvidia-uvm c 511:0\n/dev/nvidia-uvm-tools c 511:1\n/dev/nvidia-modeset c 195:254"
	if got := paths(in); got != want || in.Source != "device nodes" || len(in.Mounts)+len(in.Hooks)+len(in.Warnings) > 0 {
		t.Errorf("got %+v\nwant %s", in, want)
	}
	if n := in.Nodes[0]; n.HostPath != filepath.Join(root, "dev/nvidia1") || n.Mode != 0o666 {
		t.Errorf("got %+v", n)
	}
}

func TestInjectNothing(t *testing.T) {
	in, err := Inject(t.Context(), nil, InjectOptions{Root: t.TempDir(), Image: true})
	if err != nil || len(in.Nodes)+len(in.Mounts)+len(in.Warnings) > 0 {
		t.Errorf("got %+v (%v)", in, err)
	}
}

func TestInjectMIG(t *testing.T) {
	root := driverRoot(t)
	d := devicesOf(t, root)[1]
	d = d.instance(MIG{UUID: "MIG-a", GPUInstance: 1, ComputeInstance: 0})
	in, err := Inject(t.Context(), []Device{d}, InjectOptions{Root: root})
	if err != nil || !strings.HasPrefix(paths(in), "/dev/nvidia0 c 195:0\n/dev/nvidia-caps/nvidia-cap30 c 237:30\n/dev/nvidia-caps/nvidia-cap31 c 237:31\n") {
		t.Errorf("got %s (%v)", paths(in), err)
	}
	d.Instance.GPUInstance = 9
	if _, err := Inject(t.Context(), []Device{d}, InjectOptions{Root: root}); err == nil {
		t.Error("an instance without capabilities was injected")
	}
}

func TestInjectNodesMissing(t *testing.T) {
	root := driverRoot(t)
	devices := devicesOf(t, root)
	for _, name := range []string{"nvidia-uvm", "nvidia-modeset", "nvidia0"} {
		if err := os.Remove(filepath.Join(root, "dev", name)); err != nil {
			t.Fatal(err)
		}
	}
	in, err := Inject(t.Context(), devices[:1], InjectOptions{Root: root})
	if err != nil || len(in.Warnings) != 1 || !strings.HasPrefix(in.Warnings[0], "no /dev/nvidia-uvm: CUDA will not start") {
		t.Errorf("got %q (%v)", in.Warnings, err)
	}
	if err := os.Symlink("/dev/null", filepath.Join(root, "dev/nvidia0")); err != nil {
		t.Fatal(err)
	}
	for _, d := range []Device{devices[1], {Index: -1, Minor: -1, UUID: "MIG-zzz"}} {
		if _, err := Inject(t.Context(), []Device{d}, InjectOptions{Root: root}); err == nil {
			t.Errorf("%s was injected", d)
		}
	}
}

// libraries puts driver files into a root, with a loader's cache that ldconfig makes.
func libraries(t *testing.T, root string, cache bool) {
	t.Helper()
	lib := filepath.Join(root, "usr/lib/x86_64-linux-gnu")
	self, err := filepath.EvalSymlinks("/lib/x86_64-linux-gnu/libc.so.6")
	if err != nil {
		self = "/proc/self/exe"
	}
	elf, err := os.ReadFile(self) // ldconfig takes nothing else than ELF files
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"libcuda.so", "libnvidia-ml.so", "libcudart.so"} {
		writeFile(t, filepath.Join(lib, name+".550.54.15"), string(elf))
		if err := os.Symlink(name+".550.54.15", filepath.Join(lib, name+".1")); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(root, "usr/bin/nvidia-smi"), "#!/bin/sh\n")
	if !cache {
		return
	}
	writeFile(t, filepath.Join(root, "etc/ld.so.conf"), "/usr/lib/x86_64-linux-gnu\n")
	if out, err := exec.CommandContext(t.Context(), "/sbin/ldconfig", "-X", "-r", root).CombinedOutput(); err != nil {
		t.Fatalf("ldconfig: %v\n%s", err, out)
	}
}

func TestInjectImage(t *testing.T) {
	for _, cache := range []bool{true, false} {
		t.Run(fmt.Sprintf("cache %v", cache), func(t *testing.T) {
			root := driverRoot(t)
			libraries(t, root, cache)
			in, err := Inject(t.Context(), devicesOf(t, root), InjectOptions{Root: root, Image: true})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range in.Mounts {
				if !m.ReadOnly || !slices.Contains(m.Options, "ro") {
					t.Errorf("%s can be written", m.To)
				}
				from, err := filepath.Rel(root, m.From)
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, m.To+" < /"+from)
			}
			slices.Sort(got)
			const lib = "/usr/lib/x86_64-linux-gnu/"
			want := []string{
				"/usr/bin/nvidia-smi < /usr/bin/nvidia-smi",
				lib + "libcuda.so.1 < " + lib + "libcuda.so.550.54.15", lib + "libcuda.so.550.54.15 < " + lib + "libcuda.so.550.54.15",
				lib + "libnvidia-ml.so.1 < " + lib + "libnvidia-ml.so.550.54.15", lib + "libnvidia-ml.so.550.54.15 < " + lib + "libnvidia-ml.so.550.54.15",
			}
			if !slices.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if !slices.Equal(in.LibraryDirs, []string{"/usr/lib/x86_64-linux-gnu"}) || len(in.Warnings) > 0 {
				t.Errorf("folders %v, warnings %q", in.LibraryDirs, in.Warnings)
			}
		})
	}
	t.Run("no driver files", func(t *testing.T) {
		root := driverRoot(t)
		in, err := Inject(t.Context(), devicesOf(t, root), InjectOptions{Root: root, Image: true})
		if err != nil || len(in.Warnings) != 1 || !strings.Contains(in.Warnings[0], "no libcuda.so") {
			t.Errorf("got %q (%v)", in.Warnings, err)
		}
	})
}

// spec is what nvidia-ctk cdi generate writes, shortened.
const spec = `---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
    - name: "0"
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia1
    - name: GPU-1
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia1
              permissions: rw
              fileMode: 438
    - name: GPU-0
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
              major: 195
    - name: all
      containerEdits:
        deviceNodes:
            - path: /dev/nvidia0
            - path: /dev/nvidia1
containerEdits:
    env:
        - NVIDIA_VISIBLE_DEVICES=void
    deviceNodes:
        - path: /dev/nvidiactl
        - path: /dev/nvidia-uvm
    hooks:
        - hookName: createContainer
          path: /usr/bin/nvidia-cdi-hook
          args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib/x86_64-linux-gnu]
          env: [NVIDIA_CTK_DEBUG=false, LD_PRELOAD=/evil.so, LD_LIBRARY_PATH=/evil]
    mounts:
        - hostPath: /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15
          containerPath: /usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15
          options: [ro, nosuid, nodev, rbind, rprivate]
`

// cdiRoot is a driverRoot with libraries, a spec and a toolkit of the version.
func cdiRoot(t *testing.T, version string) string {
	t.Helper()
	root := driverRoot(t)
	libraries(t, root, false)
	writeFile(t, filepath.Join(root, "etc/cdi/nvidia.yaml"), spec)
	hook := filepath.Join(root, "usr/bin/nvidia-cdi-hook")
	writeFile(t, hook, fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --version ] && [ -z \"$LD_PRELOAD$SECRET\" ] && echo 'NVIDIA CDI Hook version %s'\n", version))
	if err := os.Chmod(hook, 0o755); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestInjectCDI(t *testing.T) {
	t.Setenv("SECRET", "of the agent")
	root := cdiRoot(t, "1.20.1")
	in, err := Inject(t.Context(), devicesOf(t, root), InjectOptions{Root: root, Image: true})
	if err != nil {
		t.Fatal(err)
	}
	want := "/dev/nvidiactl c 195:255\n/dev/nvidia-uvm c 511:0\n/dev/nvidia1 c 195:1\n/dev/nvidia0 c 195:0"
	if got := paths(in); got != want || in.Source != "CDI "+filepath.Join(root, "etc/cdi/nvidia.yaml") || len(in.Warnings) > 0 {
		t.Errorf("got %+v\nwant %s", in, want)
	}
	if len(in.Mounts) != 1 || !in.Mounts[0].ReadOnly || in.Mounts[0].To != "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15" {
		t.Errorf("mounts: %+v", in.Mounts)
	}
	if in.Env["NVIDIA_VISIBLE_DEVICES"] != "void" {
		t.Errorf("env: %v", in.Env)
	}
	if len(in.Hooks) != 1 {
		t.Fatalf("hooks: %+v", in.Hooks)
	}
	h := in.Hooks[0]
	if h.Stage != "createContainer" || h.Path != filepath.Join(root, "usr/bin/nvidia-cdi-hook") || h.Args[1] != "update-ldcache" {
		t.Errorf("hook: %+v", h)
	}
	if len(h.Env) != 2 || !strings.HasPrefix(h.Env[0], "PATH=/") || h.Env[1] != "NVIDIA_CTK_DEBUG=false" {
		t.Errorf("a hook's environment: %q", h.Env)
	}
}

func TestInjectCDIHostRoot(t *testing.T) {
	root := cdiRoot(t, "1.20.1")
	in, err := Inject(t.Context(), devicesOf(t, root)[:1], InjectOptions{Root: root})
	if err != nil || len(in.Mounts)+len(in.Hooks) > 0 || len(in.Nodes) != 3 || !strings.HasPrefix(in.Source, "CDI") {
		t.Errorf("got %+v (%v)", in, err)
	}
}

func TestToolkitFloor(t *testing.T) {
	for version, warned := range map[string]bool{"1.17.7": true, "1.9.20": true, "0.99.99": true, "1.17.8": true, "1.20.0": true, "1.20.1": false, "1.21.0": false, "2.0.0": false, "unknown": false} {
		t.Run(version, func(t *testing.T) {
			root := cdiRoot(t, version)
			in, err := Inject(t.Context(), devicesOf(t, root)[:1], InjectOptions{Root: root, Image: true})
			if err != nil || len(in.Hooks) != 1 {
				t.Fatalf("got %+v (%v)", in, err)
			}
			got := len(in.Warnings) == 1 && strings.Contains(in.Warnings[0], "CVE-2025-23266")
			if got != warned {
				t.Errorf("warnings %q", in.Warnings)
			}
		})
	}
}

// What cannot be used is not taken, and the device nodes are; the reason is told.
func TestInjectCDIRefused(t *testing.T) {
	file := func(root string) string { return filepath.Join(root, "etc/cdi/nvidia.yaml") }
	change := func(old, with string) func(*testing.T, string) {
		return func(t *testing.T, root string) { writeFile(t, file(root), strings.ReplaceAll(spec, old, with)) }
	}
	mode := func(path string, mode os.FileMode) func(*testing.T, string) {
		return func(t *testing.T, root string) {
			if err := os.Chmod(filepath.Join(root, path), mode); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name  string
		spoil func(t *testing.T, root string)
		says  string
	}{
		{"names other devices", change("GPU-1", "GPU-9"), ""}, // found by its index, still
		{"no device of ours", change("nvidia.com/gpu", "nvidia.com/nic"), ""},
		{"an unknown device", func(t *testing.T, root string) {
			writeFile(t, file(root), strings.NewReplacer("GPU-1", "GPU-9", `"0"`, `"7"`).Replace(spec))
		}, "no spec names GPU 0 (GPU-1, NVIDIA A100-SXM4-40GB)"},
		{"an index of other days", func(t *testing.T, root string) {
			writeFile(t, file(root), strings.NewReplacer("GPU-1", "GPU-9", "/dev/nvidia1", "/dev/nvidia0").Replace(spec))
		}, "a spec names /dev/nvidia0, which is not granted"},
		{"another GPU for everybody", change("- path: /dev/nvidiactl", "- path: /dev/nvidia0"), "a spec names /dev/nvidia0, which is not granted"},
		{"no GPU", change("/dev/nvidia1", "/dev/nvidia-modeset"), "no spec names /dev/nvidia1"},
		{"a link out of a folder of anybody's", func(t *testing.T, root string) {
			elsewhere := filepath.Join(root, "srv/nvidia.yaml")
			writeFile(t, elsewhere, spec)
			if err := errors.Join(os.Chmod(filepath.Dir(elsewhere), 0o777), os.Remove(file(root)), os.Symlink(elsewhere, file(root))); err != nil {
				t.Fatal(err)
			}
		}, "srv, which belongs to uid 0 (mode 0777)"},
		{"below a folder of anybody's", mode("etc", 0o777), "etc, which belongs to uid 0 (mode 0777)"},
		{"an old library", change("550.54.15", "535.1.1"), "it is stale: stat"},
		{"an old node", change("/dev/nvidiactl", "/dev/nvidiactl9"), "it is stale: device node /dev/nvidiactl9"},
		{"no YAML", change("kind:", "\t:"), "CDI spec"},
		{"written by anybody", mode("etc/cdi/nvidia.yaml", 0o666), "may be written by others (mode"},
		{"a folder of anybody's", mode("etc/cdi", 0o777), "cdi, which belongs to uid 0 (mode 0777)"},
		{"a hook of anybody's", mode("usr/bin/nvidia-cdi-hook", 0o777), "may be written by others (mode"},
		{"a stranger's", func(t *testing.T, root string) {
			if err := os.Chown(file(root), 12345, 12345); err != nil {
				t.Fatal(err)
			}
		}, "belongs to uid 12345, want root"},
		{"no hook there", func(t *testing.T, root string) {
			if err := os.Remove(filepath.Join(root, "usr/bin/nvidia-cdi-hook")); err != nil {
				t.Fatal(err)
			}
		}, "nvidia-cdi-hook"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			root := cdiRoot(t, "1.20.1")
			tt.spoil(t, root)
			in, err := Inject(t.Context(), devicesOf(t, root)[:1], InjectOptions{Root: root, Image: true})
			if err != nil {
				t.Fatal(err)
			}
			warned := strings.Join(in.Warnings, "; ")
			if tt.says == "" {
				if len(in.Warnings) > 0 {
					t.Errorf("got %s", warned)
				}
				return
			}
			if in.Source != "device nodes" || !strings.Contains(warned, tt.says) || !strings.Contains(paths(in), "/dev/nvidia1 ") {
				t.Errorf("got %s with %q, want …%s", in.Source, warned, tt.says)
			}
		})
	}
}
