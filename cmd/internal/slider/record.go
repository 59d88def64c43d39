package slider

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/policy"
)

// What Slider's commands keep of an app, in .slider of its work folder. The agent gives no name with a dot there to a
// process (files.Admission). A process of the same user on the host's root could still write there.
//
//	slider.json   the record; a folder without it is none of Slider's apps
//	definition/N/ what create, or the N-th update, was given: package/NAME, template/FILE, resources/FILE
const (
	keptIn      = ".slider"
	recordFile  = "slider.json"
	definitions = "definition"
)

// record is slider.json. Its paths are relative to the record's folder.
type record struct {
	Version    int         `json:"version"`
	App        string      `json:"app"`
	AppDef     string      `json:"appdef"`   // where it came from, without passwords
	Revision   int         `json:"revision"` // of the definition, from 1
	Definition string      `json:"definition"`
	Template   string      `json:"template,omitempty"`
	Resources  string      `json:"resources,omitempty"`
	Set        []string    `json:"set,omitempty"`
	Instances  []string    `json:"instances,omitempty"`
	Run        runRecord   `json:"run"`
	Yarn       *yarnRecord `json:"yarn,omitempty"` // nil: it runs on this host
	Created    time.Time   `json:"created"`
	Updated    time.Time   `json:"updated"`
}

// runRecord is how the app is run.
type runRecord struct {
	StateDir string   `json:"state_dir"`
	Registry string   `json:"registry,omitempty"` // empty: one of the run's own
	Engine   string   `json:"engine,omitempty"`
	Policy   string   `json:"policy,omitempty"`
	Userns   string   `json:"userns,omitempty"`
	Host     string   `json:"host,omitempty"`
	Ports    string   `json:"ports,omitempty"`
	Env      []string `json:"env,omitempty"`
	Strict   bool     `json:"require_limits,omitempty"`
}

// readRecord reads the record in a folder. The folders and the file must be this user's own, and no links.
func readRecord(app string, folders ...string) (r record, err error) {
	path := filepath.Join(folders[len(folders)-1], recordFile)
	for _, p := range append(folders, path) {
		if err := checkOwn(p); err != nil {
			return r, err
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, fmt.Errorf("read %s: %w", path, err)
	}
	if r.App != app || r.Version != 1 {
		return r, fmt.Errorf("%s: got app %q in form %d, want %q in form 1", path, r.App, r.Version, app)
	}
	return r, nil
}

// checkOwn refuses what is another user's, or is neither a plain file nor a folder.
func checkOwn(path string) error {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return &os.PathError{Op: "open", Path: path, Err: err}
	}
	kind := st.Mode & unix.S_IFMT
	if int(st.Uid) != os.Geteuid() || kind != unix.S_IFDIR && kind != unix.S_IFREG {
		return exit.With(exit.Forbidden,
			fmt.Errorf("%s: got another user's, or a link; want what muster slider has made", path))
	}
	return nil
}

// write puts the record into a folder, atomically. The app is locked. Only this user can read the record: --env may
// hold secrets.
func (r *record) write(dir string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	next := filepath.Join(dir, "."+recordFile)
	if err := os.WriteFile(next, append(text, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(dir, recordFile))
}

// appFlags choose the kept definition; dir is the record's folder.
func (r *record) appFlags(dir string) flags.App {
	f := flags.App{Choices: openapp.Choices{Set: r.Set, Instances: r.Instances}}
	if r.Template != "" {
		f.Template = filepath.Join(dir, r.Template)
	}
	if r.Resources != "" {
		f.Resources = filepath.Join(dir, r.Resources)
	}
	return f
}

// take takes how the app is to be run from the command line; what is not given stays.
func (r *runRecord) take(c *call) {
	for option, value := range map[string]*string{
		"--registry": &r.Registry, "--engine": &r.Engine, "--host": &r.Host, "--ports": &r.Ports,
	} {
		if c.has(option) {
			*value = c.one(option)
		}
	}
	if at, err := registry.ParseAddress(r.Registry); err == nil { // check reports the error
		if path, ok := at.Socket(); ok {
			r.Registry = registry.SocketAddress(flags.Absolute(path)).String()
		}
	}
	if c.has("--policy") {
		r.Policy = flags.Absolute(c.one("--policy"))
	}
	r.Userns = cmp.Or(c.one("--userns"), os.Getenv("MUSTER_AGENT_USERNS"), r.Userns)
	if c.has("--state-dir") {
		r.StateDir = string(c.stateDir(""))
	}
	r.Strict = r.Strict || c.has("--require-limits")
	for _, w := range c.given["--env"] {
		r.Env = append(r.Env, w[0])
	}
}

// policy is that of the app, else of the host.
func (r *runRecord) policy() (policy.Policy, error) {
	f := flags.Policy{File: r.Policy, Userns: r.Userns}
	return f.Read()
}
