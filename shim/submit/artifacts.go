package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/gpu"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/ownfolder"
	"github.com/muster-agent/muster/shim/render"
)

// artifacts are what a run brings to the hosts.
type artifacts struct {
	dir         string       // where those lie that are made here
	app         *openapp.App // what they are made of; nil: a submission of HBox's
	files       []artifact
	names       []string // of the files, in the store
	unsupported []string // of a submission of HBox's

	store  *runStore // nil: nothing is brought
	folder *runFolder
	before []string // what the same run has brought earlier: the job may be running
	stays  error    // why the folder could not be removed
}

func newArtifacts() (*artifacts, error) {
	dir, err := os.MkdirTemp("", "muster-submit-")
	if err != nil {
		return nil, exit.With(exit.Internal, fmt.Errorf("submit: %w", err))
	}
	return &artifacts{dir: dir}, nil
}

// close removes what was made on this machine alone.
func (a *artifacts) close() {
	if a.app != nil {
		a.app.Close()
	}
	_ = os.RemoveAll(a.dir) // a temporary folder stays at worst
}

// load reads APP, or the words of a submission, and says what of it is brought.
func (o *Options) load(ctx context.Context, a *artifacts, args []string) (appdef.App, error) {
	if o.Submission == nil && args[0] == HBoxVerb {
		job, err := o.parseWords(args[1:])
		if err != nil {
			return appdef.App{}, err
		}
		o.Submission = &job
	}
	if o.Submission != nil {
		return o.loadSubmission(a, *o.Submission)
	}
	l, err := o.Choices.Load(ctx, args[0], o.Err)
	if err != nil {
		return appdef.App{}, err
	}
	a.app = l
	return l.App, o.choose(a, l)
}

// loadSubmission makes a package of a submission of HBox's.
func (o *Options) loadSubmission(a *artifacts, job hbox.Submission) (app appdef.App, err error) {
	if a.unsupported, err = o.carry(job); err != nil {
		return appdef.App{}, err
	}
	if o.File.App != "" {
		return job.App, nil
	}
	dir, err := o.Pack(a.dir, job)
	if err != nil {
		return appdef.App{}, err
	}
	return job.App, a.pack(dir, job.App.Name)
}

// choose says what of an APP is brought: what lies on this machine, with the documents in it that flags replace.
func (o *Options) choose(a *artifacts, l *openapp.App) error {
	c := &o.Choices
	if o.File.App != "" { // the agents find it by themselves
		o.File.App = l.Pinned(o.File.App)
		return nil
	}
	other := c.Template != "" || c.Resources != ""
	stored := cmp.Or(o.Store, l.App.Settings.Store) != ""
	switch {
	case !other && (l.URL != "" || strings.HasPrefix(l.Ref, "catalog:")):
		o.File.App = l.Ref
		return nil
	case o.Launcher.Client.OneHost && !stored && l.Ref != openapp.Stdin:
		o.File.App = l.Pinned(l.Ref)
		return nil
	case !other && l.URL == "" && l.Job == nil && !l.Package.Folder:
		a.files = append(a.files, artifact{Name: filepath.Base(l.Package.Path), Path: l.Package.Path})
		return nil
	}
	dir := filepath.Join(a.dir, "package")
	if err := errors.Join(os.Mkdir(dir, 0o755), packages.Copy(l.Package.FS, dir)); err != nil {
		return fmt.Errorf("submit: %w", err)
	}
	for name, from := range map[string]string{"appConfig.json": c.Template, "resources.json": c.Resources} {
		if from == "" {
			continue
		}
		text, err := os.ReadFile(from)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
	}
	c.Template, c.Resources = "", "" // they are in the package now
	return a.pack(dir, l.App.Name)
}

// pack makes an archive of a folder to be brought.
func (a *artifacts) pack(dir, name string) error {
	name = appdef.NameOf(name, "") + ".zip"
	file := filepath.Join(a.dir, name)
	if _, err := packages.Pack(dir, file, packages.PackOptions{}); err != nil {
		return exit.With(exit.Definition, fmt.Errorf("submit: %w", err))
	}
	a.files = append(a.files, artifact{Name: name, Path: file})
	return nil
}

// place finds the store, and says where the hosts will find in it what is brought.
func (o *Options) place(ctx context.Context, a *artifacts, app *appdef.App) error {
	client := o.Launcher.Client
	bring := o.File.Binary == "" && !client.InImage
	if o.File.Binary == "" {
		o.File.Binary = PodBinary
	}
	url := cmp.Or(o.Store, app.Settings.Store)
	if bring {
		own, err := os.Executable()
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		o.File.Binary = own
		if bring = url != "" || !client.OneHost; bring {
			a.files = append(a.files, artifact{Name: render.BinaryName, Path: own, Executable: true})
		} else if ownfolder.Trusted(own, 0) != nil { // its owner could exchange it until an agent starts
			name, err := nameOf(ctx, artifact{Name: render.BinaryName, Path: own})
			if err != nil {
				return fmt.Errorf("submit: %w", err)
			}
			o.File.BinarySHA256 = name[:64]
		}
		if helper := o.helper(app); bring && helper != nil {
			a.files = append(a.files, artifact{Name: render.HelperName, Path: *helper, Executable: true})
		}
	}
	if len(a.files) == 0 {
		return nil
	}
	if err := o.openStore(ctx, a, url, bring); err != nil {
		return err
	}
	return a.locate(ctx, &o.File)
}

// helper is muster-gpu, for an app that asks for GPUs.
func (o *Options) helper(app *appdef.App) *string {
	if !slices.ContainsFunc(app.Components, func(c appdef.Component) bool { return c.Limits.GPUs > 0 }) {
		return nil
	}
	path := gpu.FindHelper()
	if path == nil {
		fmt.Fprintf(o.Warn, "note: %s is neither beside this muster nor in PATH, so none is brought: a host without "+
			"it has no look at the health, the links and the memory of its GPUs\n", render.HelperName)
	}
	return path
}

// PodBinary is where muster is in the image of a pod.
const PodBinary = "/usr/local/bin/muster"

// openStore refuses a store that the hosts cannot use.
func (o *Options) openStore(ctx context.Context, a *artifacts, url string, binary bool) error {
	if url == "" {
		return a.noStore()
	}
	if err := errors.Join(o.Choices.Hadoop.Check(), o.checkStoreAs()); err != nil {
		return err
	}
	store, err := openStore(ctx, url, o.Choices.Hadoop.Stores(o.Err))
	if err != nil {
		return exit.Usagef("submit: %w", err)
	}
	if o.StoreAs != "" {
		store.SeenAs(o.StoreAs)
	}
	name, client := o.Launcher.Jobs.Name, o.Launcher.Client
	if binary && !store.Local() && !client.FetchesPrograms && !store.Web() {
		return exit.With(exit.Definition,
			fmt.Errorf("submit: %s starts no program from %s: --binary says where muster is on each host, "+
				"or --store names a folder that all of them see", name, url))
	}
	if client.InImage && store.Local() {
		return exit.With(exit.Definition, fmt.Errorf("submit: pods do not see the folder %s: "+
			"--store-as says the URL of a web server that shows it, or --store names one on HDFS", url))
	}
	a.store, a.folder = store, store.Folder(o.File.AppID, o.File.Run)
	return a.folder.checkAccess(ctx)
}

// checkStoreAs refuses what hosts cannot see a store as.
func (o *Options) checkStoreAs() error {
	scheme, _, _ := strings.Cut(strings.ToLower(o.StoreAs), ":")
	_, known := o.Choices.Hadoop.Stores(nil)[scheme]
	if o.StoreAs != "" && !known && !strings.HasPrefix(o.StoreAs, "/") {
		return exit.Usagef("submit: --store-as %q: want a URL, or an absolute path on the hosts", o.StoreAs)
	}
	return nil
}

// noStore names what has to be brought, and what could be said instead.
func (a *artifacts) noStore() error {
	var what []string
	for _, file := range a.files {
		switch {
		case file.Name == render.HelperName:
		case file.Executable:
			what = slices.Insert(what, 0, "muster itself (or --binary says where it is on each host)")
		default:
			what = append(what, file.Name+" (or --app says where the agents find it)")
		}
	}
	these := "these are"
	if len(what) == 1 {
		these = "this is"
	}
	return exit.With(exit.Definition,
		fmt.Errorf("submit: no store: --store, or muster.store in the definition, says where %s put for the hosts: %s",
			these, strings.Join(what, ", ")))
}

// locate says in the job where the hosts will find the files.
func (a *artifacts) locate(ctx context.Context, o *render.Options) error {
	for _, file := range a.files {
		name, err := nameOf(ctx, file)
		if err != nil {
			return fmt.Errorf("submit: %w", err)
		}
		a.names = append(a.names, name)
		at := a.folder.URL(name)
		if a.store.Local() {
			at = a.folder.Path(name)
		}
		switch {
		case file.Name == render.HelperName:
			o.Helper, o.HelperSHA256 = at, name[:64]
		case file.Executable:
			o.Binary, o.BinarySHA256 = at, name[:64]
		default:
			o.App = a.folder.URL(name) + openapp.Pin + name[:64]
		}
	}
	return nil
}

// bring puts everything into the run's folder.
func (a *artifacts) bring(ctx context.Context, r record) (err error) {
	if a.store == nil {
		return nil
	}
	if a.before, err = a.folder.Files(ctx); err == nil {
		err = a.folder.Begin(ctx, r)
	}
	if err != nil {
		return exit.Default(openapp.FetchCode(err), fmt.Errorf("submit: %w", err))
	}
	for i, file := range a.files {
		if err := a.folder.Put(ctx, a.names[i], file); err != nil {
			err = fmt.Errorf("submit: store: %w", err)
			return errors.Join(exit.Default(openapp.FetchCode(err), err), a.takeBack(ctx))
		}
	}
	return nil
}

// replace removes what the same run has brought earlier, now that its job is started again.
func (a *artifacts) replace(ctx context.Context) error {
	if a.store == nil {
		return nil
	}
	return a.folder.Delete(ctx, missingIn(a.before, append(a.names, recordName))...)
}

// takeBack removes what was brought for a job that did not start. What the same run has brought earlier stays: it may
// be running.
func (a *artifacts) takeBack(ctx context.Context) error {
	if len(a.before) == 0 {
		a.stays = a.remove(ctx)
		return a.stays
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removePatience)
	defer cancel()
	return a.folder.Delete(ctx, missingIn(a.names, a.before)...)
}

// missingIn are the names that others does not have.
func missingIn(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// removePatience bounds what has no other end: a NameNode may never answer.
const removePatience = 2 * time.Minute

// remove removes the run's folder, also when who waits was interrupted: nothing else ends it.
func (a *artifacts) remove(ctx context.Context) error {
	if a.store == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removePatience)
	defer cancel()
	if err := a.folder.Remove(ctx); err != nil {
		return fmt.Errorf("submit: store: what was brought stays there: %w", err)
	}
	return nil
}
