package prepare

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/sandbox/container"
)

// hadoopMounts are the folders of the host's Hadoop that a container needs, read-only. On the host's root only folders
// that each container has of its own need a mount.
func (c *Container) hadoopMounts(p plan.Plan) []container.Mount {
	h := p.Hadoop
	if h == nil || p.Root.Kind == plan.RootHost {
		return nil
	}
	var all []container.Mount
	for _, path := range slices.Concat([]string{h.Conf, h.Home, h.HDFSHome, h.Java, krb5Conf()}, h.Classes) {
		shown := slices.ContainsFunc(all, func(m container.Mount) bool { return files.Within(path, m.To) })
		there := p.Root.Kind != plan.RootImage && !files.InContainer(path)
		if path == "" || shown || there || shared(path) || !files.IsFolder(path) && !files.IsFile(path) {
			continue
		}
		all = append(all, container.Mount{From: files.Resolve(path), To: path, ReadOnly: true, Options: inert})
	}
	return all
}

// krb5Conf is the path of Kerberos' configuration.
func krb5Conf() string {
	path, _, _ := strings.Cut(cmp.Or(os.Getenv("KRB5_CONFIG"), "/etc/krb5.conf"), ":")
	return filepath.Clean(path)
}

// shared recognises folders that every system has: the host's folder would cover the image's.
func shared(path string) bool {
	return slices.Contains([]string{
		"/", "/usr", "/usr/lib", "/usr/lib64", "/usr/share", "/usr/local", "/usr/local/lib",
		"/opt", "/etc", "/lib", "/lib64", "/var", "/var/lib", "/home", "/root", "/srv", "/bin",
	}, filepath.Clean(path))
}
