package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/status"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/schemes"
)

// sliderCreate makes an app and starts it; build makes it only.
func sliderCreate(ctx context.Context, s console.Streams, p *sliderWords) error {
	name, err := p.name()
	if err != nil {
		return err
	}
	if _, _, err := p.wait(); err != nil {
		return err
	}
	home, err := openSliderHome()
	if err != nil {
		return err
	}
	lock, err := home.lock(name)
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // an app that runs is locked by its work folder
	a := home.app(name)
	if err := a.mayBeMade(ctx, s, p); err != nil {
		return err
	}
	if err := home.make(s, a, p); err != nil {
		return err
	}
	if p.verb == "build" {
		fmt.Fprintf(s.Out, "%s: built in %s; muster slider start %s runs it\n", name, a.dir, name)
		return nil
	}
	return a.start(ctx, s, p, lock)
}

// mayBeMade refuses a name that is taken: by an app of ours, by a folder that is not, by a run of another launcher.
func (a *sliderApp) mayBeMade(ctx context.Context, s console.Streams, p *sliderWords) error {
	switch err := a.read(); {
	case err == nil:
		return exit.With(exit.Held, fmt.Errorf("%s exists already: muster slider start %s runs it, update changes it, destroy --force removes it", a.name, a.name))
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if _, err := os.Lstat(a.dir); err == nil {
		return exit.With(exit.Held, fmt.Errorf("folder %s is there and is no app of muster slider: move it away, or choose another name", a.dir))
	}
	facts, err := a.lookup(s, p).OnHost(ctx, a.name)
	if err != nil {
		return err
	}
	if sliderRuns(&facts) {
		return exit.With(exit.Held, fmt.Errorf("%s runs already, started by other means: muster status %s says more", a.name, a.name))
	}
	return nil
}

// make fills the app's folder, checks the whole, and puts it in its place.
func (h sliderHome) make(s console.Streams, a *sliderApp, p *sliderWords) error {
	dir, err := h.scratch(a.name)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }() // the next create removes it too
	now := status.Stamp(time.Now())
	a.record = sliderRecord{Version: 1, App: a.name, Created: now}
	a.record.Run.StateDir = string(p.stateDir(""))
	if err := a.record.fill(dir, p, now); err != nil {
		return err
	}
	if err := a.record.check(s, dir); err != nil {
		return err
	}
	if err := errors.Join(a.record.write(dir), os.Chmod(dir, 0o755)); err != nil { // components may be of other users
		return exit.With(exit.Forbidden, err)
	}
	return exit.With(exit.Forbidden, os.Rename(dir, a.dir))
}

// sliderUpdate changes the definition, or how it is run, from the next start on.
func sliderUpdate(ctx context.Context, s console.Streams, p *sliderWords) error {
	a, lock, err := p.openLocked()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Release() }() // this process ends
	facts, err := a.lookup(s, p).OnHost(ctx, a.name)
	if err != nil {
		return err
	}
	next := a.record
	next.Set, next.Instances = slices.Clone(next.Set), slices.Clone(next.Instances)
	if err := next.fill(a.dir, p, status.Stamp(time.Now())); err != nil {
		return errors.Join(err, next.drop(a.dir))
	}
	if err := next.check(s, a.dir); err != nil {
		return errors.Join(err, next.drop(a.dir))
	}
	if err := next.write(a.dir); err != nil {
		return exit.With(exit.Forbidden, errors.Join(err, next.drop(a.dir)))
	}
	a.record = next
	when := "holds from its next start on"
	if sliderRuns(&facts) {
		when = fmt.Sprintf("what runs stays as it is; muster slider stop %s and start %s bring the new one", a.name, a.name)
	}
	fmt.Fprintf(s.Out, "%s: updated; %s\n", a.name, when)
	return nil
}

// drop removes the revision that was to be.
func (r *sliderRecord) drop(dir string) error {
	return os.RemoveAll(filepath.Join(dir, sliderDefinitions, strconv.Itoa(r.Revision)))
}

// tidy removes the revisions that the record does not name any more.
func (r *sliderRecord) tidy(dir string) error {
	at := filepath.Join(dir, sliderDefinitions)
	entries, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		named := slices.ContainsFunc([]string{r.Definition, r.Template, r.Resources}, func(part string) bool {
			return strings.HasPrefix(part, filepath.Join(sliderDefinitions, e.Name())+"/")
		})
		if !named {
			err = errors.Join(err, os.RemoveAll(filepath.Join(at, e.Name())))
		}
	}
	return err
}

// fill lays what the command line gives into dir as the next revision; what it does not give stays.
func (r *sliderRecord) fill(dir string, p *sliderWords, now time.Time) error {
	r.Revision++
	r.Updated = now
	revision := filepath.Join(sliderDefinitions, strconv.Itoa(r.Revision))
	if err := os.MkdirAll(filepath.Join(dir, revision), 0o755); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	if err := r.fillPackage(dir, revision, p); err != nil {
		return err
	}
	for option, part := range map[string]*string{"--template": &r.Template, "--resources": &r.Resources} {
		if !p.has(option) {
			continue
		}
		*part = filepath.Join(revision, strings.TrimLeft(option, "-"), filepath.Base(p.one(option)))
		if err := copySmall(p.one(option), filepath.Join(dir, *part)); err != nil {
			return err
		}
	}
	set, err := p.settings()
	if err != nil {
		return err
	}
	r.Set = append(r.Set, set...)
	for _, pair := range p.given["--component"] {
		r.Instances = append(r.Instances, pair[0]+"="+pair[1])
	}
	r.Run.take(p)
	return nil
}

// fillPackage copies the package, so that the app stays what it was made of. An archive stays one, with its signature:
// the policy of the host may ask for it at each start.
func (r *sliderRecord) fillPackage(dir, revision string, p *sliderWords) error {
	metainfo, err := p.metainfo()
	if err != nil {
		return err
	}
	ref := p.one("--appdef")
	switch {
	case ref == "" && metainfo == nil && r.Definition != "":
		return nil
	case ref == "" && metainfo == nil:
		return exit.Usagef("slider %s: without --appdef: want a folder, an archive or catalog:NAME behind it, or --metainfo alone", p.verb)
	}
	name, files := "app", fs.FS(nil)
	switch {
	case ref != "":
		from, err := r.openPackage(ref, p)
		if err != nil {
			return err
		}
		defer from.Close()
		files = from.Package.FS
		if filepath.IsLocal(from.Package.Name) && from.Package.Name != "." {
			name = filepath.Base(from.Package.Name)
		}
		r.AppDef = store.Printable(from.Ref)
		if from.Package.Digest != "" && metainfo == nil {
			r.Definition = filepath.Join(revision, "package", name)
			return keepArchive(from, filepath.Join(dir, r.Definition))
		}
	case r.Definition != "": // --metainfo of update: the rest stays
		pkg, err := packages.Open(filepath.Join(dir, r.Definition))
		if err != nil {
			return exit.With(exit.Definition, err)
		}
		defer pkg.Close()
		name, files = pkg.Name, pkg.FS
	default:
		r.AppDef = "--metainfo"
	}
	r.Definition = filepath.Join(revision, "package", name)
	to := filepath.Join(dir, r.Definition)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	if files != nil {
		if err := packages.Copy(files, to); err != nil {
			return exit.With(exit.Definition, fmt.Errorf("copy %s: %w", ref, err))
		}
	}
	return putMetainfo(to, metainfo)
}

// openPackage opens what --appdef names, if the policy that the app will be run under admits it.
func (r *sliderRecord) openPackage(ref string, p *sliderWords) (openapp.Source, error) {
	run := r.Run
	run.take(p)
	rules, err := run.policy()
	if err != nil {
		return openapp.Source{}, err
	}
	// A command of Slider is not called off: the process ends.
	return (&openapp.Choices{Signed: true, Policy: &rules}).Open(context.Background(), ref)
}

// policy is that of the app, else of the host.
func (r *sliderRun) policy() (policy.Policy, error) {
	return policy.Read(cmp.Or(r.Policy, policy.DefaultFile), r.Policy != "")
}

// keepArchive copies an archive, and its signature where it has one.
func keepArchive(from openapp.Source, to string) error {
	ctx := context.Background() // local files: nobody waits for a network
	if _, err := store.Put(ctx, to, from.Package.Path, from.Package.Digest, schemes.Local()); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	if from.Signature == "" {
		return nil
	}
	_, err := store.Put(ctx, to+sign.Ending, from.Signature, "", schemes.Local())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return exit.With(exit.Forbidden, err)
}

// putMetainfo puts one in place of the package's, by the name that its form has.
func putMetainfo(dir string, text []byte) error {
	if text == nil {
		return nil
	}
	for _, name := range []string{"metainfo.json", "metainfo.xml"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return exit.With(exit.Forbidden, err)
		}
	}
	name := "metainfo.json"
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("<")) {
		name = "metainfo.xml"
	}
	return exit.With(exit.Forbidden, os.WriteFile(filepath.Join(dir, name), text, 0o644))
}

// metainfo is the text of --metainfo or --metainfojson, nil without.
func (p *sliderWords) metainfo() ([]byte, error) {
	switch {
	case p.has("--metainfo") && p.has("--metainfojson"):
		return nil, exit.Usagef("slider %s: got --metainfo and --metainfojson, want one of them", p.verb)
	case p.has("--metainfojson"):
		if text := []byte(p.one("--metainfojson")); json.Valid(text) {
			return text, nil
		}
		return nil, exit.Usagef("slider %s: --metainfojson: want JSON", p.verb)
	case p.has("--metainfo"):
		file, err := openapp.ReadDocument(p.one("--metainfo"))
		if err != nil {
			return nil, err
		}
		return file.Data, nil
	}
	return nil, nil
}

// copySmall copies a definition's file. It is read once: it may be a pipe.
func copySmall(from, to string) error {
	file, err := openapp.ReadDocument(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	return exit.With(exit.Forbidden, os.WriteFile(to, file.Data, 0o600))
}

// settings are --option and its like as `muster run --set` takes them.
func (p *sliderWords) settings() ([]string, error) {
	var set []string
	add := func(option, level, key, value string) error {
		if key == "" || strings.Contains(key, "=") {
			return exit.Usagef("slider %s: %s: key %q: want one without =", p.verb, option, key)
		}
		set = append(set, level+":"+key+"="+value)
		return nil
	}
	var errs []error
	for _, option := range []string{"--option", "--resopt"} {
		for _, w := range p.given[option] {
			errs = append(errs, add(option, "global", w[0], w[1]))
		}
	}
	for _, option := range []string{"--compopt", "--rescompopt"} {
		for _, w := range p.given[option] {
			if strings.Contains(w[0], ":") {
				errs = append(errs, exit.Usagef("slider %s: %s: component %q: want one without a colon", p.verb, option, w[0]))
				continue
			}
			errs = append(errs, add(option, w[0], w[1], w[2]))
		}
	}
	for _, w := range p.given["--addon"] {
		errs = append(errs, add("--addon", "global", "application.addon."+w[0], w[1]))
	}
	for option, name := range map[string]string{"--zkhosts": "ZK_HOST", "--zkpath": "DEFAULT_ZK_PATH"} {
		if p.has(option) {
			set = append(set, name+"="+p.one(option))
		}
	}
	return set, errors.Join(errs...)
}

// take takes how the app is to be run from the command line; what it does not say stays.
func (r *sliderRun) take(p *sliderWords) {
	for option, value := range map[string]*string{"--registry": &r.Registry, "--engine": &r.Engine, "--host": &r.Host, "--ports": &r.Ports} {
		if p.has(option) {
			*value = p.one(option)
		}
	}
	if at, err := registry.ParseAddress(r.Registry); err == nil { // else check says so
		if path, ok := at.Socket(); ok {
			r.Registry = registry.SocketAddress(flags.Absolute(path)).String()
		}
	}
	if p.has("--policy") {
		r.Policy = flags.Absolute(p.one("--policy"))
	}
	if p.has("--state-dir") {
		r.StateDir = string(p.stateDir(""))
	}
	r.Strict = r.Strict || p.has("--require-limits")
	for _, w := range p.given["--env"] {
		r.Env = append(r.Env, w[0])
	}
}

// check names all that is wrong in the definition, as muster validate does.
func (r *sliderRecord) check(s console.Streams, dir string) error {
	if r.Run.Registry != "" {
		if _, err := registry.ParseAddress(r.Run.Registry); err != nil {
			return exit.With(exit.Usage, err)
		}
	}
	rules, err := r.Run.policy()
	if err != nil {
		return err
	}
	f := r.appFlags(dir)
	f.Policy = &rules
	// Local files: nobody waits for a network.
	l, found, err := f.Validate(context.Background(), filepath.Join(dir, r.Definition))
	if err != nil {
		return err
	}
	defer l.Close()
	found.Warnings().Print(s.Err)
	return exit.OfProblems(found)
}
