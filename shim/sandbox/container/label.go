package container

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// apparmorFacts are what a host says of AppArmor.
type apparmorFacts struct {
	enabled bool
	loaded  map[string]string // profile: mode; nil: it may not be read, as by an ordinary user
}

// profile is the AppArmor profile of a container: the one that the policy names, else one that other container engines
// have loaded here and that is enforced, else none.
func (f apparmorFacts) profile(named string) (string, error) {
	switch {
	case !f.enabled && named != "":
		return "", fmt.Errorf("AppArmor profile %s: AppArmor is not enabled on this host; enable it, or take "+
			"label.apparmor out of the policy", named)
	case !f.enabled:
		return "", nil
	case named != "" && f.loaded != nil && f.loaded[named] == "":
		return "", fmt.Errorf("AppArmor profile %s is not loaded on this host: load it with apparmor_parser -r, or "+
			"name another as label.apparmor in the policy", named)
	case named != "":
		return named, nil
	}
	var usable []string
	for name, mode := range f.loaded {
		if mode == "enforce" && (name == "docker-default" || strings.HasPrefix(name, "containers-default-")) {
			usable = append(usable, name)
		}
	}
	if len(usable) == 0 {
		return "", nil
	}
	// Docker's first; of Podman's, which have a version in their names, any: the last one by name.
	return slices.MaxFunc(usable, func(a, b string) int {
		return cmp.Or(strings.Compare(first(a), first(b)), strings.Compare(a, b))
	}), nil
}

func first(name string) string {
	if name == "docker-default" {
		return "1"
	}
	return "0"
}

// readAppArmor reads what a host with this root says.
func readAppArmor(root string) (apparmorFacts, error) {
	on, err := os.ReadFile(filepath.Join(root, "sys/module/apparmor/parameters/enabled"))
	if errors.Is(err, fs.ErrNotExist) {
		return apparmorFacts{}, nil
	}
	if err != nil {
		return apparmorFacts{}, err
	}
	f := apparmorFacts{enabled: strings.TrimSpace(string(on)) == "Y"}
	text, err := os.ReadFile(filepath.Join(root, "sys/kernel/security/apparmor/profiles"))
	switch {
	case errors.Is(err, fs.ErrNotExist): // securityfs is not mounted: libcontainer could set none
		return apparmorFacts{}, nil
	case errors.Is(err, fs.ErrPermission):
		return f, nil
	case err != nil:
		return f, err
	}
	f.loaded = map[string]string{}
	for line := range strings.Lines(string(text)) { // docker-default (enforce)
		if at := strings.LastIndex(line, " ("); at > 0 {
			f.loaded[line[:at]] = strings.TrimRight(line[at+2:], ")\n")
		}
	}
	return f, nil
}

// AppArmor is the profile that containers have on this host where the policy names this one; "": none.
func AppArmor(named string) (string, error) {
	f, err := readAppArmor("/")
	if err != nil {
		return "", err
	}
	return f.profile(named)
}
