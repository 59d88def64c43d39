package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/hostlock"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/status"
)

// What `muster slider` keeps of an app, in ${XDG_STATE_HOME:-~/.local/state}/muster/slider/NAME:
//
//	slider.json   the record; a folder without it is none of ours and is not touched
//	definition/N/ what create, or the N-th update, was given: package/NAME, template/FILE, resources/FILE
//	work/         the work folder of the run: package, logs, checkpoints, instances
//	run.out       what the run said last: its result
//	run.err       and what else
//
// A new folder is filled beside its place, as .NAME+<anything>, and renamed: it is there whole or not at all.
const (
	sliderMark        = "slider.json"
	sliderWork        = "work"
	sliderOut         = "run.out"
	sliderErr         = "run.err"
	sliderDefinitions = "definition"
)

// sliderParts is all that lies in an app's folder beside the record.
func sliderParts() []string {
	return []string{sliderWork, sliderOut, sliderErr, sliderDefinitions}
}

// sliderRecord is slider.json. Paths of parts are relative to its folder.
type sliderRecord struct {
	Version    int       `json:"version"`
	App        string    `json:"app"`
	AppDef     string    `json:"appdef"`   // where it came from, without passwords
	Revision   int       `json:"revision"` // of the definition, from 1
	Definition string    `json:"definition"`
	Template   string    `json:"template,omitempty"`
	Resources  string    `json:"resources,omitempty"`
	Set        []string  `json:"set,omitempty"`
	Instances  []string  `json:"instances,omitempty"`
	Run        sliderRun `json:"run"`
	Created    time.Time `json:"created"`
	Updated    time.Time `json:"updated"`
}

// sliderRun is how the app is run.
type sliderRun struct {
	StateDir string   `json:"state_dir"`
	Registry string   `json:"registry,omitempty"` // empty: one of the run's own
	Engine   string   `json:"engine,omitempty"`
	Policy   string   `json:"policy,omitempty"`
	Host     string   `json:"host,omitempty"`
	Ports    string   `json:"ports,omitempty"`
	Env      []string `json:"env,omitempty"`
	Strict   bool     `json:"require_limits,omitempty"`
}

// sliderHome is the folder of all apps.
type sliderHome string

func openSliderHome() (sliderHome, error) {
	dir, err := status.DefaultWorkDir("slider")
	return sliderHome(flags.Absolute(dir)), exit.With(exit.Forbidden, err)
}

// sliderApp is one app that was created here.
type sliderApp struct {
	name   string
	dir    string
	record sliderRecord
}

func (h sliderHome) app(name string) *sliderApp {
	return &sliderApp{name: name, dir: filepath.Join(string(h), name)}
}

// open finds an app that is there.
func (h sliderHome) open(name string) (*sliderApp, error) {
	if err := checkSliderName(name); err != nil {
		return nil, err
	}
	a := h.app(name)
	err := a.read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.Usagef("no app %q that was created here; muster slider list lists them, muster ps what else runs", name)
	}
	return a, err
}

// read reads the record, and refuses one that this user has not written here.
func (a *sliderApp) read() error {
	for _, path := range []string{a.dir, a.path(sliderMark)} {
		var is unix.Stat_t
		if err := unix.Lstat(path, &is); err != nil {
			return &fs.PathError{Op: "open", Path: path, Err: err}
		}
		kind := is.Mode & unix.S_IFMT
		if int(is.Uid) != os.Geteuid() || kind != unix.S_IFDIR && kind != unix.S_IFREG {
			return exit.With(exit.Forbidden, fmt.Errorf("%s: got another user's, or a link; want what muster slider has made", path))
		}
	}
	if err := status.ReadJSON(a.path(sliderMark), &a.record); err != nil {
		return err
	}
	if a.record.App != a.name || a.record.Version != 1 {
		return fmt.Errorf("%s: got app %q in form %d, want %q in form 1", a.path(sliderMark), a.record.App, a.record.Version, a.name)
	}
	return nil
}

// write puts the record into a folder, whole or not at all. Nobody else reads it: --env may hold secrets.
func (r *sliderRecord) write(dir string) (err error) {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "."+sliderMark+"-") // of mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, sliderMark))
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

func (a *sliderApp) path(part string) string { return filepath.Join(a.dir, part) }

func (a *sliderApp) work() string { return a.path(sliderWork) }

// appFlags choose the stored definition.
func (r *sliderRecord) appFlags(dir string) flags.App {
	f := flags.App{Choices: openapp.Choices{Set: r.Set, Instances: r.Instances}}
	if r.Template != "" {
		f.Template = filepath.Join(dir, r.Template)
	}
	if r.Resources != "" {
		f.Resources = filepath.Join(dir, r.Resources)
	}
	return f
}

// lock keeps others from making, changing, starting and destroying the app meanwhile.
func (h sliderHome) lock(name string) (*hostlock.Lock, error) {
	lock, err := hostlock.Take("slider" + filepath.Join(string(h), name))
	if errors.Is(err, hostlock.ErrHeld) {
		return nil, exit.With(exit.Held, fmt.Errorf("another muster slider is busy with %s", name))
	}
	return lock, err
}

// names are the apps that were created here, sorted.
func (h sliderHome) names() ([]string, error) {
	entries, err := os.ReadDir(string(h))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for _, e := range entries {
		if _, err := os.Lstat(filepath.Join(string(h), e.Name(), sliderMark)); err == nil && appdef.ValidName(e.Name()) {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// scratch makes the folder that a new app is filled in, and removes those that a killed command left. The app is
// locked.
func (h sliderHome) scratch(name string) (string, error) {
	if err := os.MkdirAll(string(h), 0o755); err != nil {
		return "", exit.With(exit.Forbidden, err)
	}
	entries, err := os.ReadDir(string(h))
	if err != nil {
		return "", exit.With(exit.Forbidden, err)
	}
	prefix := "." + name + "+" // + is in no name
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix) {
			if err := os.RemoveAll(filepath.Join(string(h), e.Name())); err != nil {
				return "", exit.With(exit.Forbidden, err)
			}
		}
	}
	dir, err := os.MkdirTemp(string(h), prefix)
	return dir, exit.With(exit.Forbidden, err)
}

// remove takes the app's folder away: what was made there and nothing else. Others' files stay, and are named.
// The record goes last, so that a removal that was broken off can be done again.
func (a *sliderApp) remove() (others []string, err error) {
	if below, err := mountsBelow(a.dir); err != nil || len(below) > 0 {
		return nil, cmp.Or(err, fmt.Errorf("remove %s: mounted below it: %s; unmount it first", a.dir, strings.Join(below, ", ")))
	}
	home, err := os.OpenRoot(filepath.Dir(a.dir))
	if err != nil {
		return nil, err
	}
	defer home.Close()
	own, err := home.OpenRoot(a.name)
	if err != nil {
		return nil, err
	}
	defer own.Close()
	for _, part := range append(sliderParts(), sliderMark) {
		if err := own.RemoveAll(part); err != nil {
			return nil, fmt.Errorf("remove %s: %w", a.path(part), err)
		}
	}
	err = home.Remove(a.name)
	if !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, unix.EEXIST) {
		return nil, err
	}
	entries, err := os.ReadDir(a.dir)
	for _, e := range entries {
		others = append(others, a.path(e.Name()))
	}
	return others, err
}

// mountsBelow are the mount points at or below a folder: to remove what lies there would remove it where it comes from.
func mountsBelow(dir string) ([]string, error) {
	at, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile("/proc/self/mountinfo") // proc(5): the fifth field, blanks as \040
	if err != nil {
		return nil, err
	}
	unescape := strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
	var below []string
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) < 5 {
			return nil, fmt.Errorf("mountinfo: got %q, want the form of proc(5)", line)
		}
		if point := unescape.Replace(fields[4]); point == at || strings.HasPrefix(point, at+"/") {
			below = append(below, point)
		}
	}
	slices.Sort(below)
	return below, nil
}
