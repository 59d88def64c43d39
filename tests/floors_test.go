package tests

import (
	"slices"
	"strings"
	"testing"
)

// floors are the oldest versions without the holes that are named. No database of vulnerabilities can be asked where the
// tests run, so the table is kept by hand: a new hole is a new line, or a higher number in one.
var floors = []struct{ path, atLeast, why string }{
	{"github.com/opencontainers/runc", "v1.5.0", "CVE-2026-41579, an image's /dev link leads a write to the host; " +
		"also CVE-2025-31133, CVE-2025-52565 (masked paths), CVE-2024-21626 (leaked descriptor), CVE-2019-5736 (/proc/self/exe)"},
	{"github.com/opencontainers/cgroups", "v0.1.0", "device filters of cgroup v2 are not replaced whole on Linux from 6.17 on"},
	{"github.com/opencontainers/selinux", "v1.13.0", "CVE-2025-52881, writes to /proc/self/attr are led elsewhere"},
	{"github.com/cyphar/filepath-securejoin", "v0.6.0", "opens in a root by descriptors; what came before is unsafe against later changes"},
	{"github.com/opencontainers/umoci", "v0.4.7", "CVE-2021-29136, a layer whose root is a link is unpacked elsewhere"},
	{"github.com/opencontainers/image-spec", "v1.0.2", "CVE-2021-41190, one document read as manifest and as index"},
	{"github.com/docker/cli", "v20.10.9", "CVE-2021-41092, credentials sent to the wrong registry"},
	{"github.com/google/go-containerregistry", "v0.9.0", "CVE-2021-41190, as above"},
	{"github.com/sirupsen/logrus", "v1.9.3", "CVE-2025-65637, a line without an end blocks the logger"},
	{"github.com/go-viper/mapstructure/v2", "v2.4.0", "GHSA-2464-8j7c-4cjm, values that do not fit reach error texts"},
	{"golang.org/x/crypto", "v0.59.0", "the newest when it was looked at last; CVE-2025-47914, CVE-2025-58181, and CVE-2024-45337 of ssh"},
	{"golang.org/x/net", "v0.62.0", "the newest when it was looked at last; CVE-2025-47911, CVE-2025-58190; also CVE-2023-44487 (HTTP/2 rapid reset)"},
	{"golang.org/x/sys", "v0.1.0", "CVE-2022-29526, Faccessat asks for the wrong group"},
	{"github.com/klauspost/compress", "v1.20.4", "the newest when it was looked at last: it reads strangers' archives"},
	{"github.com/hashicorp/consul/api", "v1.34.5", "the newest that Go 1.26.8 builds"},
	{"google.golang.org/protobuf", "v1.33.0", "CVE-2024-24786, endless loop in protojson"},
	{"go.yaml.in/yaml/v3", "v3.0.1", "CVE-2022-28948, panic on input"},
}

// shunned are modules that must not come in, by nobody's dependency.
var shunned = []struct{ path, why string }{
	{"github.com/mholt/archiver", "CVE-2025-3445, CVE-2024-0406: writes through an archive's links; given up by its author"},
	{"github.com/hashicorp/go-getter", "fetches by a dozen protocols and runs version control; not for a stranger's package"},
	{"github.com/dgrijalva/jwt-go", "CVE-2020-26160; given up"},
	{"github.com/docker/distribution", "CVE-2021-41190 and later ones; go-containerregistry does the same"},
}

func TestModulesAreAboveTheFloors(t *testing.T) {
	modules := requiredModules(t)
	for _, f := range floors {
		switch m, ok := modules[f.path]; {
		case !ok:
			t.Errorf("%s is not in the build: take its line out of the table, after a look at what does its work now", f.path)
		case compareVersions(m.Version, f.atLeast) < 0:
			t.Errorf("%s: got %s, want at least %s: %s", f.path, m.Version, f.atLeast, f.why)
		}
	}
	for _, s := range shunned {
		for path := range modules {
			if path == s.path || strings.HasPrefix(path, s.path+"/") {
				t.Errorf("%s must not be in the build: %s", path, s.why)
			}
		}
	}
}

// What reads what strangers send must have a floor, or the table is forgotten when such a module comes.
func TestFloorsHoldWhatReadsStrangersBytes(t *testing.T) {
	held := []string{}
	for _, f := range floors {
		held = append(held, f.path)
		if f.why == "" || compareVersions(f.atLeast, "v0.0.1") < 0 {
			t.Errorf("%s: %q %q", f.path, f.atLeast, f.why)
		}
	}
	for path := range requiredModules(t) {
		for _, word := range []string{"opencontainers/runc", "containerd/containerd", "x/crypto", "x/net", "umoci", "go-containerregistry", "docker/docker", "moby/moby/v"} {
			if strings.HasSuffix(path, word) && !slices.Contains(held, path) {
				t.Errorf("%s has no floor", path)
			}
		}
	}
}
