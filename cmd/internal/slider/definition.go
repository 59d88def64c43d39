package slider

import (
	"bytes"
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

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/schemes"
)

// revision is the folder of the newest definition.
func (r *record) revision() string { return filepath.Join(definitions, strconv.Itoa(r.Revision)) }

// tidy removes the revisions that the record names no more.
func (r *record) tidy(dir string) error {
	at := filepath.Join(dir, definitions)
	entries, err := os.ReadDir(at)
	if err != nil {
		return err
	}
	for _, e := range entries {
		named := slices.ContainsFunc([]string{r.Definition, r.Template, r.Resources}, func(part string) bool {
			return strings.HasPrefix(part, filepath.Join(definitions, e.Name())+"/")
		})
		if !named {
			err = errors.Join(err, os.RemoveAll(filepath.Join(at, e.Name())))
		}
	}
	return err
}

// fill copies what the command line names into dir as the next revision; what is not given stays.
func (r *record) fill(ctx context.Context, dir string, c *call, now time.Time) error {
	r.Revision++
	r.Updated = now
	if err := os.MkdirAll(filepath.Join(dir, r.revision()), 0o755); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	if err := r.fillPackage(ctx, dir, c); err != nil {
		return err
	}
	for option, part := range map[string]*string{"--template": &r.Template, "--resources": &r.Resources} {
		if !c.has(option) {
			continue
		}
		*part = filepath.Join(r.revision(), strings.TrimLeft(option, "-"), filepath.Base(c.one(option)))
		if err := copyDocument(c.one(option), filepath.Join(dir, *part)); err != nil {
			return err
		}
	}
	set, err := c.settings()
	if err != nil {
		return err
	}
	r.Set = append(r.Set, set...)
	for _, w := range c.given["--addon"] {
		if c.verb != "update" {
			if err := r.lacksAddon(ctx, dir, w[0], w[1]); err != nil {
				return fmt.Errorf("slider %s: --addon %s %s: %w", c.verb, w[0], w[1], err)
			}
		}
		at, err := r.fillAddon(dir, w[0], w[1])
		if err != nil {
			return fmt.Errorf("slider %s: --addon %s: %w", c.verb, w[0], err)
		}
		r.Set = append(r.Set, "global:application.addon."+w[0]+"="+at)
	}
	for _, pair := range c.given["--component"] {
		r.Instances = append(r.Instances, pair[0]+"="+pair[1])
	}
	r.Run.take(c)
	return r.takeYarn(c)
}

// takeYarn takes what the command line says of YARN. Agents on many hosts meet in a Consul alone.
func (r *record) takeYarn(c *call) error {
	if r.Yarn == nil {
		return nil
	}
	y := *r.Yarn // the record before may stay
	r.Yarn = &y
	if err := y.take(c); err != nil {
		return err
	}
	at, err := (&flags.Registry{Address: r.Run.Registry}).Resolve()
	if err != nil {
		return err
	}
	if _, socket := at.Socket(); socket {
		return exit.Usagef("slider %s: --registry %s: it is a socket of one host, and YARN starts agents on many: "+
			"want consul://HOST:PORT or consul+tls://HOST:PORT", c.verb, at)
	}
	r.Run.Registry = at.String()
	return nil
}

// settings are --option and its like as `muster run --set` takes them.
func (c *call) settings() ([]string, error) {
	var set []string
	var errs []error
	add := func(option, level, key, value string) {
		switch {
		case strings.Contains(level, ":"):
			errs = append(errs,
				exit.Usagef("slider %s: %s: component %q: want one without a colon", c.verb, option, level))
		case key == "" || strings.Contains(key, "="):
			errs = append(errs, exit.Usagef("slider %s: %s: key %q: want one without =", c.verb, option, key))
		case level == "global" && appdef.IsVariable(key):
			set = append(set, key+"="+value)
		default:
			set = append(set, level+":"+key+"="+value)
		}
	}
	for _, option := range []string{"--option", "--resopt"} {
		for _, w := range c.given[option] {
			add(option, "global", w[0], w[1])
		}
	}
	for _, option := range []string{"--compopt", "--rescompopt"} {
		for _, w := range c.given[option] {
			add(option, w[0], w[1], w[2])
		}
	}
	for _, w := range c.given["--set"] {
		set = append(set, w[0])
	}
	for option, name := range map[string]string{"--zkhosts": "ZK_HOST", "--zkpath": "DEFAULT_ZK_PATH"} {
		if c.has(option) {
			set = append(set, name+"="+c.one(option))
		}
	}
	return set, errors.Join(errs...)
}

// check names all that is wrong in the definition, as muster validate does. An app may have no instance until it is
// flexed: empty tells of that.
func (r *record) check(ctx context.Context, s console.Streams, dir string) (empty bool, err error) {
	if r.Run.Registry != "" {
		if _, err := registry.ParseAddress(r.Run.Registry); err != nil {
			return false, exit.With(exit.Usage, err)
		}
	}
	rules, err := r.Run.policy()
	if err != nil {
		return false, err
	}
	f := r.appFlags(dir)
	f.Policy = &rules
	l, found, err := f.Validate(ctx, filepath.Join(dir, r.Definition))
	if err != nil {
		return false, err
	}
	defer l.Close()
	found.Warnings().Print(s.Err)
	empty, wrong := withoutEmpty(found)
	return empty, exit.OfProblems(wrong)
}

// withoutEmpty leaves out the problem that an app has no instance.
func withoutEmpty(found appdef.Problems) (empty bool, rest appdef.Problems) {
	rest = slices.DeleteFunc(slices.Clone(found), func(p appdef.Problem) bool { return p.Kind == appdef.NoInstance })
	return len(rest) < len(found), rest
}

// fillPackage copies the package into the newest revision, so that the app stays what it was made of. An archive stays
// an archive, with its signature: the policy of the host may ask for it at each start. With --metainfo or --addon it is
// another package, and a folder.
func (r *record) fillPackage(ctx context.Context, dir string, c *call) error {
	metainfo, err := c.metainfo()
	if err != nil {
		return err
	}
	ref := c.one("--appdef")
	switch {
	case ref == "" && metainfo == nil && r.Definition != "" && !c.has("--addon"):
		return nil
	case ref == "" && metainfo == nil && r.Definition == "":
		return exit.Usagef("slider %s: without --appdef: want a folder, an archive or catalog:NAME behind it, "+
			"or --metainfo alone", c.verb)
	}
	name, content := "app", fs.FS(nil)
	switch {
	case ref != "":
		from, err := r.openPackage(ctx, ref, c)
		if err != nil {
			return err
		}
		defer from.Close()
		content = from.Package.FS
		if filepath.IsLocal(from.Package.Name) && from.Package.Name != "." {
			name = filepath.Base(from.Package.Name)
		}
		r.AppDef = store.Printable(from.Ref)
		if from.Package.Digest != "" && metainfo == nil && !c.has("--addon") {
			r.Definition = filepath.Join(r.revision(), "package", name)
			return keepArchive(ctx, from, filepath.Join(dir, r.Definition))
		}
	case r.Definition != "": // --metainfo or --addon of update: the rest stays
		pkg, err := packages.Open(filepath.Join(dir, r.Definition))
		if err != nil {
			return exit.With(exit.Definition, err)
		}
		defer pkg.Close()
		name, content = pkg.Name, pkg.FS
	default:
		r.AppDef = "--metainfo"
	}
	r.Definition = filepath.Join(r.revision(), "package", name)
	to := filepath.Join(dir, r.Definition)
	if err := os.MkdirAll(to, 0o755); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	if content != nil {
		if err := packages.Copy(content, to); err != nil {
			return exit.With(exit.Definition, fmt.Errorf("copy %s: %w", ref, err))
		}
	}
	return putMetainfo(to, metainfo)
}

// lacksAddon refuses an add-on whose name the definition has for another one.
func (r *record) lacksAddon(ctx context.Context, dir, name, from string) error {
	choices := r.appFlags(dir)
	l, _, err := choices.Read(ctx, filepath.Join(dir, r.Definition))
	if err != nil { // the definition's check says it
		return nil
	}
	defer l.Close()
	i := slices.IndexFunc(l.Addons, func(a appdef.Addon) bool { return a.Name == name })
	if i < 0 || filepath.Clean(l.Addons[i].Path) == filepath.Clean(from) {
		return nil
	}
	return exit.With(exit.Usage, fmt.Errorf("the app has an add-on of that name, %s: choose another name, or "+
		"replace it by muster slider update", l.Addons[i].Path))
}

// fillAddon copies an add-on into the package of the newest revision, and returns its path there. One that the package
// has already is named by that path.
func (r *record) fillAddon(dir, name, from string) (string, error) {
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return from, nil // the definition's check says whether the package has it
	}
	if !filepath.IsLocal(name) || filepath.Clean(name) == "." || strings.ContainsAny(name, "/=") {
		return "", exit.With(exit.Usage, fmt.Errorf("got the name %q, want one that a folder may have", name))
	}
	pkg, err := packages.Open(from)
	if err != nil {
		return "", exit.With(exit.Definition, err)
	}
	defer pkg.Close()
	at := filepath.Join("addons", name)
	into := filepath.Join(dir, r.Definition, at)
	if err := errors.Join(os.RemoveAll(into), os.MkdirAll(into, 0o755)); err != nil {
		return "", exit.With(exit.Forbidden, err)
	}
	return at, exit.With(exit.Definition, packages.Copy(pkg.FS, into))
}

// openPackage opens what --appdef names, if the policy that the app will be run under admits it.
func (r *record) openPackage(ctx context.Context, ref string, c *call) (openapp.Source, error) {
	run := r.Run
	run.take(c)
	rules, err := run.policy()
	if err != nil {
		return openapp.Source{}, err
	}
	return (&openapp.Choices{Signed: true, Policy: &rules}).Open(ctx, ref)
}

// keepArchive copies an archive, and its signature where it has one.
func keepArchive(ctx context.Context, from openapp.Source, to string) error {
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

// putMetainfo puts a metainfo in place of the package's, by the name that its form has.
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
func (c *call) metainfo() ([]byte, error) {
	switch {
	case c.has("--metainfo") && c.has("--metainfojson"):
		return nil, exit.Usagef("slider %s: got --metainfo and --metainfojson, want one of them", c.verb)
	case c.has("--metainfojson"):
		if text := []byte(c.one("--metainfojson")); json.Valid(text) {
			return text, nil
		}
		return nil, exit.Usagef("slider %s: --metainfojson: want JSON", c.verb)
	case c.has("--metainfo"):
		file, err := openapp.ReadDocument(c.one("--metainfo"))
		if err != nil {
			return nil, err
		}
		return file.Data, nil
	}
	return nil, nil
}

// copyDocument copies a file of the definition. It is read once: it may be a pipe.
func copyDocument(from, to string) error {
	file, err := openapp.ReadDocument(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	return exit.With(exit.Forbidden, os.WriteFile(to, file.Data, 0o600))
}
