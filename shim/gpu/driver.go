package gpu

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// driverLibraries are the user-space half of the driver, which must be of the kernel module's version and so comes from
// the host: computing, management and video. Names as far as `.so`.
var driverLibraries = []string{
	"libcuda", "libcudadebugger", "libnvidia-ml", "libnvidia-ptxjitcompiler", "libnvidia-nvvm", "libnvidia-nvvm70",
	"libnvidia-gpucomp", "libnvidia-opencl", "libnvidia-cfg", "libnvidia-allocator", "libnvidia-pkcs11",
	"libnvidia-pkcs11-openssl3", "libnvcuvid", "libnvidia-encode", "libnvidia-opticalflow",
}

// driverTools are its programs.
var driverTools = []string{"nvidia-smi", "nvidia-debugdump", "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"}

// Folders that hold them where the loader's cache does not say.
var (
	libraryDirs = []string{
		"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib",
		"/usr/local/nvidia/lib64", "/run/opengl-driver/lib", "/usr/lib/wsl/lib",
	}
	toolDirs = []string{
		"/usr/bin", "/usr/local/bin", "/usr/local/nvidia/bin", "/opt/bin", "/run/current-system/sw/bin",
		"/usr/lib/wsl/lib",
	}
)

// addDriverFiles mounts the driver's libraries and tools read-only where the host has them.
func (in *Injection) addDriverFiles(root string) {
	found := librariesByCache(root)
	if len(found) == 0 {
		found = librariesByFolder(root)
	}
	if !slices.ContainsFunc(found, func(p string) bool { return strings.HasPrefix(path.Base(p), "libcuda.so") }) {
		in.Warnings = append(in.Warnings, "no libcuda.so on this host: install the driver's user-space libraries")
	}
	for _, lib := range found {
		in.addFile(root, lib)
	}
	for _, tool := range driverTools {
		for _, dir := range toolDirs {
			if in.addFile(root, path.Join(dir, tool)) {
				break
			}
		}
	}
}

// addFile mounts a file under its real name and under the one it is asked for by (libcuda.so.1 → libcuda.so.550.54).
func (in *Injection) addFile(root, name string) bool {
	from, err := filepath.EvalSymlinks(filepath.Join(root, name))
	if err != nil {
		return false
	}
	if info, err := os.Stat(from); err != nil || !info.Mode().IsRegular() {
		return false
	}
	to, err := filepath.Rel(root, from)
	if err != nil || strings.HasPrefix(to, "..") {
		return false
	}
	to = "/" + to
	options := []string{"bind", "ro", "nosuid", "nodev"}
	in.addMount(cdiMount{From: from, To: to, ReadOnly: true, Options: options})
	in.addMount(cdiMount{From: from, To: path.Join(path.Dir(to), path.Base(name)), ReadOnly: true, Options: options})
	if strings.Contains(path.Base(name), ".so") && !slices.Contains(in.LibraryDirs, path.Dir(to)) {
		in.LibraryDirs = append(in.LibraryDirs, path.Dir(to))
	}
	return true
}

// isDriverLibrary takes libcuda.so.1 and libcuda.so.550.54, not libcudart.so.12.
func isDriverLibrary(file string) bool {
	stem, _, ok := strings.Cut(file, ".so")
	return ok && slices.Contains(driverLibraries, stem)
}

func librariesByCache(root string) []string {
	data, err := os.ReadFile(filepath.Join(root, "etc/ld.so.cache"))
	if err != nil {
		return nil
	}
	entries, err := parseLoaderCache(data)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if !isDriverLibrary(e.name) || slices.Contains(out, e.path) || e.foreign() {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, e.path)); err == nil {
			out = append(out, e.path)
		}
	}
	return out
}

func librariesByFolder(root string) []string {
	var out []string
	for _, dir := range libraryDirs {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if isDriverLibrary(e.Name()) {
				out = append(out, path.Join(dir, e.Name()))
			}
		}
		if len(out) > 0 {
			return out // another folder would hold the same for another architecture
		}
	}
	return out
}

// loaderEntry is a library in /etc/ld.so.cache.
type loaderEntry struct {
	name, path string
	flags      uint32
}

// foreign tells that the library is of another architecture than this program, a 32-bit one for example. The kind is
// in the second byte (FLAG_… of glibc's sysdeps/generic/ldconfig.h).
func (e loaderEntry) foreign() bool {
	native := map[string]uint32{"amd64": 0x0300, "arm64": 0x0a00}[runtime.GOARCH]
	return native != 0 && e.flags&0xff00 != native
}

const loaderMagic = "glibc-ld.so.cache1.1"

// parseLoaderCache reads glibc's cache in the form of since 2.2 (sysdeps/generic/dl-cache.h), alone or behind the older
// one: magic, count, 24 bytes; then entries of flags, name and path offsets from the magic, 12 bytes.
func parseLoaderCache(data []byte) ([]loaderEntry, error) {
	start := bytes.Index(data, []byte(loaderMagic))
	if start < 0 {
		return nil, fmt.Errorf("parse ld.so.cache: no %s in it", loaderMagic)
	}
	data = data[start:]
	const header, size = 48, 24
	if len(data) < header {
		return nil, fmt.Errorf("parse ld.so.cache: it ends after %d bytes", len(data))
	}
	count := uint64(binary.NativeEndian.Uint32(data[len(loaderMagic):]))
	if header+count*size > uint64(len(data)) {
		return nil, fmt.Errorf("parse ld.so.cache: %d entries in %d bytes", count, len(data))
	}
	var out []loaderEntry
	for i := range count {
		e := data[header+i*size:]
		name, ok1 := textAt(data, binary.NativeEndian.Uint32(e[4:]))
		file, ok2 := textAt(data, binary.NativeEndian.Uint32(e[8:]))
		if !ok1 || !ok2 {
			return nil, fmt.Errorf("parse ld.so.cache: entry %d points outside", i)
		}
		out = append(out, loaderEntry{name: name, path: file, flags: binary.NativeEndian.Uint32(e)})
	}
	return out, nil
}

func textAt(data []byte, at uint32) (string, bool) {
	if uint64(at) >= uint64(len(data)) {
		return "", false
	}
	text, _, ended := bytes.Cut(data[at:], []byte{0})
	return string(text), ended
}
