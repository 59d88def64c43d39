package status

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/files"
)

// StateDir is the state folder without --state-dir.
func StateDir(uid int, runtimeDir string) string {
	switch {
	case uid == 0:
		return "/run/muster"
	case runtimeDir != "":
		return filepath.Join(runtimeDir, "muster")
	}
	return fmt.Sprintf("/tmp/muster-%d", uid)
}

// OtherUsers are the usual state folders of the users of this host but root, who alone may open all of them: those that
// have apps. at is the host's root folder.
func OtherUsers(at string) []Dir {
	var found []Dir
	for _, pattern := range []string{"run/user/*/muster", "tmp/muster-*"} {
		all, _ := filepath.Glob(filepath.Join(at, pattern)) // it is a good pattern
		for _, dir := range all {
			info, err := os.Lstat(dir)
			if err != nil || !info.IsDir() {
				continue
			}
			uid, known := owner(info)
			usual := dir == filepath.Join(at, StateDir(uid, "")) ||
				dir == filepath.Join(at, StateDir(uid, fmt.Sprintf("/run/user/%d", uid)))
			if there, _ := filepath.Glob(Dir(dir).App("*")); known && uid != 0 && usual && len(there) > 0 {
				found = append(found, Dir(dir))
			}
		}
	}
	return found
}

// UnitsDir is the state folder of the agents that rendered systemd units start: %t/muster-agents/state, see
// systemd.unit(5).
func UnitsDir(uid int, runtimeDir string) string {
	if uid == 0 || runtimeDir == "" {
		runtimeDir = "/run"
	}
	return filepath.Join(runtimeDir, "muster-agents", "state")
}

// MaxSocket is the longest path, in bytes, that sun_path takes (unix(7)).
const MaxSocket = 107

// Dir is a state folder.
type Dir string

// Open makes the folder, 0700, and refuses one that belongs to another user, or that another user can replace. What it
// makes above is no secret: who is admitted passes through it.
func (d Dir) Open() error {
	if err := errors.Join(os.MkdirAll(filepath.Dir(string(d)), 0o755), os.MkdirAll(string(d), 0o700)); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	info, err := os.Lstat(string(d))
	if err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	uid, known := owner(info)
	switch {
	case !info.IsDir():
		return fmt.Errorf("state folder %s: got a %s, want a folder; give --state-dir another", d, info.Mode().Type())
	case known && uid != os.Geteuid(): // root would kill and remove by what a stranger writes there
		return fmt.Errorf("state folder %s: belongs to uid %d, not to uid %d; give --state-dir another", d, uid,
			os.Geteuid())
	case known && uid == os.Geteuid() && info.Mode().Perm() != 0o700 && (uid != 0 || info.Mode().Perm() != passage):
		if err := os.Chmod(string(d), 0o700); err != nil { // sockets and states are private
			return fmt.Errorf("state folder: %w", err)
		}
	}
	if err := files.Private(string(d)); err != nil {
		return fmt.Errorf("state folder: %w", err)
	}
	return nil
}

// Trusted refuses a folder that another user than root has made: what is written there would lead a command, and the
// token it holds, to that user's registry and sockets. Root may read what another has, for it names the folder. One
// that is not there holds nothing.
func (d Dir) Trusted() error {
	for _, look := range []func(string) (fs.FileInfo, error){os.Lstat, os.Stat} { // a link, and where it leads
		info, err := look(string(d))
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("state folder: %w", err)
		}
		if uid, _ := owner(info); uid != 0 && uid != os.Geteuid() && os.Geteuid() != 0 {
			return fmt.Errorf("state folder %s: belongs to uid %d, not to uid %d; give --state-dir another", d, uid,
				os.Geteuid())
		}
	}
	return nil
}

// passage is the mode of a folder that other users may pass if they know a name in it, and may not list.
const passage = 0o711

// Admit gives a socket of the folder to another user, who may then pass to it. Only root can.
func (d Dir) Admit(socket string, uid, gid int) error {
	if err := os.Lchown(socket, uid, gid); err != nil {
		return fmt.Errorf("give the socket to uid %d: %w", uid, err)
	}
	for dir := filepath.Dir(socket); ; dir = filepath.Dir(dir) {
		if name, err := filepath.Rel(string(d), dir); err != nil || !filepath.IsLocal(name) {
			return nil
		}
		if err := os.Chmod(dir, passage); err != nil {
			return fmt.Errorf("let uid %d pass: %w", uid, err)
		}
	}
}

// App is the folder of one app.
func (d Dir) App(app string) string { return filepath.Join(string(d), "apps", app) }

// Socket is the path of a socket in the app's folder: name.sock, or a short one where that is too long.
func (d Dir) Socket(app, name string) string {
	path := filepath.Join(d.App(app), name+".sock")
	if len(path) <= MaxSocket {
		return path
	}
	return filepath.Join(string(d), "s", shortSocket(app, name))
}

func shortSocket(app, name string) string {
	sum := sha256.Sum256([]byte(app + "/" + name))
	return hex.EncodeToString(sum[:8]) + ".sock"
}

// socketOf tells whether a path is that of the instance's socket in any state folder.
func socketOf(path, app, instance string) bool {
	dir := filepath.Dir(path)
	long := Dir(filepath.Dir(filepath.Dir(dir))).App(app)
	return filepath.IsAbs(path) && filepath.Clean(path) == path &&
		(dir == long && filepath.Base(path) == instance+".sock" ||
			filepath.Base(dir) == "s" && filepath.Base(path) == shortSocket(app, instance))
}

// AppFile is app.json: how to find a run that was started on this host.
type AppFile struct {
	Version  int              `json:"version"`
	App      string           `json:"app"`
	Name     string           `json:"name"`
	Run      string           `json:"run"`
	Registry registry.Address `json:"registry"`
	WorkDir  string           `json:"work_dir"`
	LogDir   string           `json:"log_dir"`
	Pid      int              `json:"pid"`
	Started  time.Time        `json:"started"`
	// Instances are those that `muster run` launches at its start; of an agent's file: none.
	Instances []string `json:"instances,omitempty"`
}

// PlaceFile is INSTANCE.place: where an instance of a run logs on this host. It stays when its agent has ended, and the
// next agent of the instance writes it anew: a launcher gives each container folders of its own.
type PlaceFile struct {
	Version int    `json:"version"`
	Run     string `json:"run"`
	LogDir  string `json:"log_dir"` // the instance's own
}

// placeEnding differs from that of records, which Sockets looks for.
const placeEnding = ".place"

// Place is the path of an instance's PlaceFile.
func (d Dir) Place(app, instance string) string {
	return filepath.Join(d.App(app), instance+placeEnding)
}

// Places are the PlaceFiles of a run, by instance. Files that cannot be read are left out.
func (d Dir) Places(app, run string) map[string]PlaceFile {
	found := map[string]PlaceFile{}
	paths, err := filepath.Glob(filepath.Join(d.App(app), "*"+placeEnding))
	if err != nil {
		return found
	}
	for _, path := range paths {
		var f PlaceFile
		if ReadJSON(path, &f) == nil && f.Run == run {
			found[strings.TrimSuffix(filepath.Base(path), placeEnding)] = f
		}
	}
	return found
}

// ResultFile is result.json, and the answer of `muster run --json`.
type ResultFile struct {
	Version int    `json:"version"`
	App     string `json:"app"`
	Run     string `json:"run"`
	Name    string `json:"name"`
	Ending
	Restarts    int               `json:"restarts"`
	Failures    int               `json:"failures"` // of which restarts followed, or the end
	Generations int               `json:"generations"`
	Instances   []Instance        `json:"instances"`
	Times       Times             `json:"times"`
	Problems    []any             `json:"problems"`
	WorkDir     string            `json:"work_dir"`
	LogDir      string            `json:"log_dir"`
	Code        int               `json:"code"`
	Verdict     *registry.Verdict `json:"verdict,omitempty"`
}

// Ending is how a run ended and why.
type Ending struct {
	Outcome string  `json:"outcome"` // succeeded, failed, stopped, interrupted
	Class   *string `json:"class"`
	Cause   string  `json:"cause"`
	First   *string `json:"first"` // the instance that failed first
	Advice  string  `json:"advice"`
}

// Times are the seconds of a run's parts, of the slowest instance each.
type Times struct {
	Staging    float64 `json:"staging"`
	Barrier    float64 `json:"barrier"`
	Running    float64 `json:"running"`
	Restarting float64 `json:"restarting"`
	Total      float64 `json:"total"`
}

// Rounded rounds to milliseconds.
func (t Times) Rounded() Times {
	ms := func(s float64) float64 { return math.Round(s*1000) / 1000 }
	return Times{ms(t.Staging), ms(t.Barrier), ms(t.Running), ms(t.Restarting), ms(t.Total)}
}

// InstanceFile is INSTANCE.json: what the next agent on this host must clear if this one is killed.
type InstanceFile struct {
	Version    int      `json:"version"`
	Pid        int      `json:"pid"`
	StartTicks uint64   `json:"start_ticks"` // clock ticks after boot
	BootID     string   `json:"boot_id"`
	PidNS      string   `json:"pid_ns"` // inode of the pid namespace of Pid
	Inc        string   `json:"incarnation"`
	Cgroups    []string `json:"cgroups"`
	// Inodes are the numbers of these cgroups, by path. Records of earlier builds have none.
	Inodes map[string]uint64 `json:"cgroup_inodes,omitempty"`
	Mounts []string          `json:"mounts"`
	Dirs   []string          `json:"dirs,omitempty"` // of containers
	// WorkDir is the instance's folder, which each of its processes has in its environment.
	WorkDir string `json:"work_dir,omitempty"`
	// Guard is the process that stands between agent and app.
	Guard *registry.ProcessRef `json:"guard,omitempty"`
	// Seen is what /proc said of the guard when it had started.
	Seen *GuardSeen `json:"guard_seen,omitempty"`
}

// GuardSeen tells a guard from another process that has its number. Records of earlier builds have none.
type GuardSeen struct {
	Exe    string `json:"exe"` // of /proc/PID/exe; empty: not readable
	UID    int    `json:"uid"`
	Cgroup string `json:"cgroup"` // /proc/PID/cgroup
}

// WriteJSON writes a value atomically; every user may read it.
func WriteJSON(path string, value any) error { return writeJSON(path, value, 0o755, 0o644) }

// WriteOwnJSON is WriteJSON for the agent's own user alone.
func WriteOwnJSON(path string, value any) error { return writeJSON(path, value, 0o700, 0o600) }

func writeJSON(path string, value any, dir, file fs.FileMode) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := os.MkdirAll(filepath.Dir(path), dir); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(append(text, '\n'))
	err = errors.Join(err, f.Chmod(file), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(f.Name()))
	}
	return nil
}

// ReadJSON reads what WriteJSON wrote; an error names a corrupt file. Only plain files of bounded size are read.
func ReadJSON(path string, value any) error {
	text, err := files.ReadPlain(path)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	return nil
}

// Apps lists the runs known on this host, the newest first. Files that cannot be read are left out.
func (d Dir) Apps() ([]AppFile, error) {
	if err := d.Trusted(); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(filepath.Join(string(d), "apps"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list apps: %w", err)
	}
	var all []AppFile
	for _, e := range entries {
		var f AppFile
		if ReadJSON(filepath.Join(d.App(e.Name()), "app.json"), &f) == nil {
			all = append(all, f)
		}
	}
	slices.SortFunc(all, func(a, b AppFile) int { return b.Started.Compare(a.Started) })
	return all, nil
}

// Sockets lists the agents' sockets of an app by instance name.
func (d Dir) Sockets(app string) map[string]string {
	found := map[string]string{}
	entries, err := os.ReadDir(d.App(app))
	if err != nil {
		return found
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok || name == "app" || name == "result" {
			continue
		}
		found[name] = d.Socket(app, name)
	}
	return found
}

// Stamp is a time as our files and answers have it: UTC, in milliseconds.
func Stamp(t time.Time) time.Time { return t.Round(0).UTC().Truncate(time.Millisecond) }
