package doctor

import (
	"strings"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/launcher"
	"github.com/muster-agent/muster/shim/prepare"
)

// networks are filesystems that several hosts share, by their number of statfs(2). FUSE is not among them: its number
// does not say what is behind it.
var networks = map[uint32]string{
	0x6969:                "NFS",
	0x0bd00bd0:            "Lustre",
	0x517b:                "SMB",
	unix.CIFS_SUPER_MAGIC: "CIFS",
	0xfe534d42:            "SMB2",
	0x00c36400:            "CephFS",
	0x19830326:            "BeeGFS",
	0x47504653:            "GPFS",
}

// checkNetworkFiles warns of folders that several hosts share: the table of subordinate ids is one host's. magic is the
// number of the filesystem that a folder is on.
func checkNetworkFiles(found launcher.Found, o Options, magic func(dir string) uint32) Check {
	const name = "network files"
	p := o.Policy
	switch {
	case o.PolicyErr != nil:
		return good(name, "not known while the policy cannot be read")
	case !prepare.MakesIDs(p):
		return good(name, "are used with the same ids as on other hosts: processes have no subordinate ones")
	}
	var dirs []string
	if dir, _, err := workFolder(found, o); err == nil {
		dirs = append(dirs, dir)
	}
	for _, m := range p.Mounts {
		dirs = append(dirs, m.Path)
	}
	for _, r := range p.Roots {
		dirs = append(dirs, r.Path)
	}
	var shared []string
	for _, dir := range dirs {
		if network := networks[magic(dir)]; network != "" {
			shared = append(shared, dir+" ("+network+")")
		}
	}
	if len(shared) == 0 {
		return good(name, "none: the work folder and the policy's mounts and roots are on filesystems of this host")
	}
	return bad(name, "set muster.user to a user whom users in the policy admits, keep the data in a store such as "+
		"HDFS, or "+p.Admit(`"userns": "host"`), "%s: each host gives an app other subordinate ids, and two apps "+
		"may have the same ids there", strings.Join(shared, ", "))
}

// magicOf is the number of the filesystem that a folder is on, or will be; 0: it cannot be asked.
func magicOf(dir string) uint32 {
	var is unix.Statfs_t
	if err := unix.Statfs(existing(dir), &is); err != nil {
		return 0
	}
	return uint32(is.Type) //nolint:gosec // numbers have 32 bits
}
