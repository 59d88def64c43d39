package container

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/opencontainers/runc/libcontainer/configs"
	"golang.org/x/sys/unix"
)

// The root is a skeleton: a folder of empty folders and links made here, so that no image chooses any part of it.
// libcontainer mounts on them in the container's own mount namespace.

// ownNames are the top-level names that every container has from us, whatever the host or the image has there.
var ownNames = []string{"proc", "sys", "dev", "run", "tmp"}

const (
	safe   = unix.MS_NOSUID | unix.MS_NODEV
	inert  = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC
	binds  = unix.MS_BIND | unix.MS_REC
	tmpRun = "mode=0755,size=16m"
)

// build makes the skeleton and says what is to be mounted in it, in order.
func (s *Spec) build(root string, who identity) ([]*configs.Mount, error) {
	if err := errors.Join(os.Mkdir(root, 0o755), who.give(root, 0, 0)); err != nil {
		return nil, err
	}
	for _, name := range ownNames {
		at := filepath.Join(root, name)
		if err := errors.Join(os.Mkdir(at, 0o755), who.give(at, 0, 0)); err != nil {
			return nil, err
		}
	}
	var below []*configs.Mount
	var err error
	if len(s.Root.Layers) == 0 {
		below, err = s.hostRoot(root, who)
	} else {
		below, err = s.imageRoot(root, who)
	}
	if err != nil {
		return nil, err
	}
	tmp, err := s.private("tmp", who)
	if err != nil {
		return nil, err
	}
	mounts := append(below, bind(tmp, "/tmp", safe))
	mounts = append(append(mounts, s.sys(root, who)...), s.kernelMounts(who)...)
	if path, hidden := resolver(); hidden && len(s.Root.Layers) == 0 {
		mounts = append(mounts, bind(path, path, safe|unix.MS_RDONLY))
	}
	for _, m := range s.Mounts {
		// A container that renames a folder on that path would lead the removal elsewhere.
		if !m.ReadOnly && within(s.Dir, m.From) {
			return nil, fmt.Errorf("mount %s, writable: the container's own folder %s lies in it; want a work folder "+
				"outside of it", m.From, s.Dir)
		}
		asked, err := m.mount()
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, asked)
	}
	return mounts, nil
}

// private makes a folder that all users may write to, on a disk: its content does not count as the container's memory.
func (s Spec) private(name string, who identity) (string, error) {
	path := filepath.Join(s.Dir, name)
	if err := errors.Join(os.Mkdir(path, 0o700), who.give(path, 0, 0)); err != nil {
		return "", err
	}
	return path, os.Chmod(path, 0o777|fs.ModeSticky)
}

func bind(from, to string, flags int) *configs.Mount {
	return &configs.Mount{Device: "bind", Source: from, Destination: to, Flags: unix.MS_BIND | flags}
}

// readonly binds a folder with all that is mounted below it.
func readonly(from, to string) *configs.Mount {
	return &configs.Mount{
		Device: "bind", Source: from, Destination: to, Flags: binds,
		RecAttr: &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV},
	}
}

// sys is a new sysfs. Only the owner of the network namespace may mount one: with ids of its own a container finds that
// of the stage. It would see the host's with all that is mounted there, and a JVM takes the host's cgroups for its own.
func (s *Spec) sys(root string, who identity) []*configs.Mount {
	switch {
	case who.ids == nil:
		return []*configs.Mount{{
			Device: "sysfs", Source: "sysfs", Destination: "/sys", Flags: inert | unix.MS_RDONLY,
		}}
	// An ordinary user mounts none at all. In the container's folder it would be seen once more below the host's root.
	case who.rootless || s.memoryDir == s.Dir:
		return []*configs.Mount{readonly("/sys", "/sys")}
	case s.stage == nil:
		s.stage = &stage{root: root, ids: who.ids}
	}
	s.stage.sys = true
	return nil
}

func (s Spec) kernelMounts(who identity) []*configs.Mount {
	shm := "mode=1777"
	if s.Shm > 0 {
		shm += ",size=" + strconv.FormatInt(s.Shm, 10)
	}
	pts := "newinstance,ptmxmode=0666,mode=0620"
	if !who.rootless {
		pts += ",gid=5"
	}
	return []*configs.Mount{
		{Device: "proc", Source: "proc", Destination: "/proc", Flags: inert},
		{Device: "cgroup", Source: "cgroup", Destination: "/sys/fs/cgroup", Flags: inert | unix.MS_RDONLY},
		{
			Device: "tmpfs", Source: "tmpfs", Destination: "/dev", Flags: unix.MS_NOSUID | unix.MS_STRICTATIME,
			Data: "mode=755,size=65536k",
		},
		{
			Device: "devpts", Source: "devpts", Destination: "/dev/pts", Flags: unix.MS_NOSUID | unix.MS_NOEXEC,
			Data: pts,
		},
		{Device: "tmpfs", Source: "shm", Destination: "/dev/shm", Flags: inert, Data: shm},
		{Device: "mqueue", Source: "mqueue", Destination: "/dev/mqueue", Flags: inert},
		{Device: "tmpfs", Source: "tmpfs", Destination: "/run", Flags: safe, Data: tmpRun},
	}
}

// hostRoot shows the host as it is now, read-only, but for what is private to every container.
func (s Spec) hostRoot(root string, who identity) ([]*configs.Mount, error) {
	entries, err := os.ReadDir("/")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if slices.Contains(ownNames, e.Name()) {
			continue
		}
		at := filepath.Join(root, e.Name())
		switch {
		case e.Type() == fs.ModeSymlink:
			to, err := os.Readlink("/" + e.Name())
			if err == nil {
				err = os.Symlink(to, at)
			}
			if err != nil {
				return nil, err
			}
		case e.IsDir():
			if err := os.Mkdir(at, 0o755); err != nil {
				return nil, err
			}
			if !slices.Contains(unusedFolders, e.Name()) && !isEmptyFolder("/"+e.Name()) {
				names = append(names, e.Name())
			}
		}
	}
	// The folder that holds the container's own comes first: later, it would show what is mounted in the skeleton
	// again.
	own := strings.SplitN(s.Dir, "/", 3)[1]
	slices.SortStableFunc(names, func(a, b string) int { return boolToInt(b == own) - boolToInt(a == own) })
	var mounts []*configs.Mount
	for _, name := range names {
		mounts = append(mounts, readonly("/"+name, "/"+name))
	}
	files, err := s.hostFiles(who)
	return append(mounts, files...), err
}

// unusedFolders are folders of a host that no job reads; a mount of each would cost time at every start.
var unusedFolders = []string{"boot", "lost+found"}

// isEmptyFolder tells that a top-level folder holds nothing, not even a mount: the empty folder of the skeleton does.
func isEmptyFolder(path string) bool {
	var here, root unix.Stat_t
	if unix.Lstat(path, &here) != nil || unix.Lstat("/", &root) != nil || here.Dev != root.Dev {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = f.Readdirnames(1)
	return errors.Is(err, io.EOF)
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// hostFiles are what lies over the host's root.
func (s Spec) hostFiles(who identity) ([]*configs.Mount, error) {
	var mounts []*configs.Mount
	if info, err := os.Lstat("/var/tmp"); err == nil && info.IsDir() {
		tmp, err := s.private("var-tmp", who)
		if err != nil {
			return nil, err
		}
		mounts = append(mounts, bind(tmp, "/var/tmp", safe))
	}
	if info, err := os.Lstat("/etc/hosts"); err == nil && info.Mode().IsRegular() && s.Hostname != "" {
		path := filepath.Join(s.memoryDir, "hosts")
		if err := os.WriteFile(path, s.hosts(), 0o644); err != nil {
			return nil, err
		}
		mounts = append(mounts, bind(path, "/etc/hosts", safe|unix.MS_RDONLY))
	}
	return mounts, nil
}

// hosts is /etc/hosts of the container: the host's own names and the container's.
func (s Spec) hosts() []byte {
	b, err := os.ReadFile("/etc/hosts")
	if err != nil {
		b = []byte("127.0.0.1\tlocalhost\n::1\tlocalhost\n")
	}
	text := strings.TrimRight(string(b), "\n") + "\n"
	if s.Hostname == "" {
		return []byte(text)
	}
	address := s.Address
	if address == "" {
		address = "127.0.1.1"
	}
	return []byte(text + address + "\t" + s.Hostname + "\n")
}

// resolver finds what /etc/resolv.conf is, when it is a link into a folder that the container does not see.
func resolver() (path string, hidden bool) {
	path, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		return "", false
	}
	return path, slices.Contains([]string{"run", "tmp"}, strings.SplitN(path, "/", 3)[1])
}

// mountOptions are those of mount(8) that a mount may ask for.
var mountOptions = map[string]int{
	"ro": unix.MS_RDONLY, "nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC,
	"rbind": binds, "bind": unix.MS_BIND, "rw": 0,
	"rprivate": 0, "private": 0, // all mounts are
}

func (m Mount) mount() (*configs.Mount, error) {
	if !filepath.IsAbs(m.From) || !filepath.IsAbs(m.To) || filepath.Clean(m.To) == "/" {
		return nil, fmt.Errorf("mount %s at %s: want absolute paths", m.From, m.To)
	}
	if _, err := os.Stat(m.From); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("mount %s: %w", m.From, fs.ErrNotExist)
	}
	flags := unix.MS_BIND
	for _, o := range m.Options {
		f, ok := mountOptions[o]
		if !ok {
			return nil, fmt.Errorf("mount %s at %s: option %q is not known", m.From, m.To, o)
		}
		flags |= f
	}
	c := &configs.Mount{Device: "bind", Source: m.From, Destination: filepath.Clean(m.To), Flags: flags}
	if m.ReadOnly {
		c.Flags |= unix.MS_RDONLY
		c.RecAttr = &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	}
	return c, nil
}
