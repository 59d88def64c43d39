package sandbox

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/shim/sandbox/guard"
	"github.com/muster-agent/muster/shim/sandbox/subids"
)

// caller is who looks a program up, as the host's kernel knows it.
type caller struct {
	uid  int
	gids []int
	ids  *subids.Map // whose root it is; nil: of no user namespace
}

func (g *Guard) callerOf(s Spec) caller {
	as := s.User
	if as == nil {
		as = g.options.Confine.User
	}
	ids := g.options.Confine.IDs
	if as == nil && ids == nil {
		groups, _ := os.Getgroups() // without them a hint is worse, and no more
		return caller{os.Geteuid(), append(groups, os.Getegid()), nil}
	}
	if as == nil {
		as = &guard.User{}
	}
	c := caller{uid: int(as.UID)}
	if as.UID == 0 {
		c.ids = ids
	}
	for _, gid := range append([]uint32{as.GID}, as.Groups...) {
		out := int(gid)
		if ids != nil {
			out, _ = ids.GID(out)
		}
		c.gids = append(c.gids, out)
	}
	if ids != nil {
		c.uid, _ = ids.UID(c.uid)
	}
	return c
}

// may tells whether the mode of a file lets the caller execute it, or pass through the folder that it is.
func (c caller) may(info fs.FileInfo) bool {
	is, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok || c.uid == 0 || c.ids != nil && c.ids.HasUser(int(is.Uid)):
		return info.IsDir() || info.Mode()&0o111 != 0
	case int(is.Uid) == c.uid:
		return info.Mode()&0o100 != 0
	case slices.Contains(c.gids, int(is.Gid)):
		return info.Mode()&0o010 != 0
	}
	return info.Mode()&0o001 != 0
}

// shut says what is closed to the caller: the first folder on the way to a path, or what is at its end; "": nothing, or
// a folder is missing. Nothing is looked at behind a closed folder, through a link neither: a definition must not learn
// what is there.
func (c caller) shut(path string) string { return c.shutBelow(path, 40) } // as many links as path_resolution(7) follows

func (c caller) shutBelow(path string, links int) string {
	at, rest := "/", strings.Split(strings.TrimPrefix(filepath.Clean(path), "/"), "/")
	for i, element := range append([]string{""}, rest...) {
		at = filepath.Join(at, element)
		info, err := os.Lstat(at)
		switch {
		case err != nil:
			return ""
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(at)
			if err != nil || links == 0 {
				return ""
			}
			if !filepath.IsAbs(to) {
				to = filepath.Join(filepath.Dir(at), to)
			}
			return c.shutBelow(filepath.Join(append([]string{to}, rest[i:]...)...), links-1)
		case c.may(info):
		case info.IsDir():
			return at + " is closed to " + c.String()
		default:
			return fmt.Sprintf("%s has mode %04o, by which %s, may not execute it", at, info.Mode().Perm(), c)
		}
	}
	return ""
}

func (c caller) String() string { return fmt.Sprintf("the process, uid %d on this host", c.uid) }

// closedHint says what on the way to a program is closed to the process, and whether the open folders of PATH lack the
// program: the kernel says "permission denied" of a PATH with a closed folder, whatever the others have.
func (g *Guard) closedHint(s Spec, dir string) (hint string, absent bool) {
	const install = ": install it in another folder, or in the image that muster.image names"
	c, name := g.callerOf(s), s.Argv[0]
	unknown := "the program or a folder on the way is closed to " + c.String() + ", or the file system is mounted " +
		"noexec"
	below := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(dir, path)
	}
	if strings.Contains(name, "/") {
		path, shut := below(name), ""
		if g.seesHost(path) {
			shut = c.shut(path)
		}
		return cmp.Or(shut, unknown), false
	}
	var all []string
	for _, in := range pathOf(s.Env) {
		in = below(in)
		if !g.seesHost(in + "/") {
			return "looked for in PATH: " + unknown + install, false
		}
		if shut := c.shut(in); shut != "" {
			if !slices.Contains(all, shut) {
				all = append(all, shut)
			}
		} else if shut := c.shut(filepath.Join(in, name)); shut != "" {
			return "looked for in PATH: " + shut + install, false
		}
	}
	if len(all) == 0 {
		return "looked for in PATH: " + unknown + install, false
	}
	return "looked for in PATH, of which " + strings.Join(all, ", ") + install, true
}

// seesHost tells whether the process has at a path what the host has there.
func (g *Guard) seesHost(path string) bool {
	return len(g.options.Confine.Root.Layers) == 0 && g.ownFolder(path) == ""
}

// pathOf are the folders in which the guard looks for a program.
func pathOf(env []string) []string {
	for _, e := range env {
		if path, ok := strings.CutPrefix(e, "PATH="); ok {
			return strings.Split(path, ":")
		}
	}
	return []string{"/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"}
}
