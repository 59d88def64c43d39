package slider

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/slidershell"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/shim/sandbox/proc"
	"github.com/muster-agent/muster/shim/store"
)

const (
	// clientDefaults are a package's settings for its client.
	clientDefaults = "clientInstallConfig-default.json"
	// clientRoot is the setting that names the client's own folder below the one that it is installed in.
	clientRoot = "client_root"
	// installDir is the setting that names the folder that the client is installed in, which INSTALL empties first.
	installDir = "app_install_dir"
	// plainInstall is the script of a client that has none: it brings metainfo's packages.
	plainInstall = "from resource_management import Script; Script().execute()"
)

// client is one installation of what a package has for its users.
type client struct {
	*call
	of    *app // whose configurations it gets; nil: of no app
	pkg   *openapp.App
	name  string // of the app; empty: of none
	title string // of the app, else of the package
	dest  string
	own   *appdef.Component // the CLIENT component; nil: the package has none
}

// installClient is `client --install`: the CLIENT component's INSTALL, as Slider's client ran it.
func installClient(ctx context.Context, c *call) error {
	switch {
	case len(c.args) > 1:
		return exit.Usagef("slider client: got %s, want the name of one app", strings.Join(c.args, " "))
	case !c.has("--install"):
		return exit.Usagef("slider client: want --install")
	case !c.has("--dest"):
		return exit.Usagef("slider client: want --dest DIR, a new or an empty folder")
	}
	in := client{call: c, dest: flags.Absolute(c.one("--dest")), name: c.one("--name")}
	if len(c.args) == 1 {
		in.name = c.args[0]
	}
	in.title = cmp.Or(in.name, store.Printable(c.one("--package")))
	if in.title == "" {
		return exit.Usagef("slider client: want --package APP, or --name NAME of an app that was created here")
	}
	if err := in.open(ctx); err != nil {
		return err
	}
	defer in.pkg.Close()
	isClient := func(c appdef.Component) bool { return c.Category == "CLIENT" }
	if i := slices.IndexFunc(in.pkg.Components, isClient); i >= 0 {
		in.own = &in.pkg.Components[i]
	}
	settings, err := in.settings()
	if err != nil {
		return err
	}
	// What may fail comes before INSTALL, which leaves a folder that the next try would refuse.
	configs, err := in.configs(ctx, settings)
	if err != nil {
		return err
	}
	if err := mustBeEmpty(in.dest); err != nil {
		return err
	}
	if err := in.install(ctx, settings); err != nil {
		return err
	}
	for path, text := range configs {
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, text, 0o644))
		if err != nil {
			return exit.With(exit.Forbidden, err)
		}
	}
	_, err = fmt.Fprintf(c.Out, "%s: its client is in %s\n", in.title, in.dest)
	return exit.With(exit.Internal, err)
}

// open reads the package: of --package, else the one that the app was created with. Nothing of it but its metainfo
// concerns a client.
func (c *client) open(ctx context.Context) error {
	choices, ref, operator := openapp.Choices{Progress: c.Err}, c.one("--package"), runRecord{}
	if c.name != "" {
		h, err := openHome()
		if err != nil {
			return err
		}
		a, err := h.find(ctx, c.call, c.name)
		switch {
		case err == nil:
			c.of, operator = a, a.record.Run
		case ref == "" || !errors.As(err, new(noApp)):
			return err
		}
		if ref == "" {
			choices, ref = a.record.appFlags(a.kept()).Choices, filepath.Join(a.kept(), a.record.Definition)
		}
	}
	operator.take(c.call)
	rules, err := operator.policy()
	if err != nil {
		return err
	}
	return c.read(ctx, choices, ref, rules)
}

func (c *client) read(ctx context.Context, choices openapp.Choices, ref string, rules policy.Policy) error {
	if err := openapp.AdmitFile(rules, "--config", c.one("--config")); err != nil {
		return err
	}
	choices.Policy = &rules
	pkg, found, err := choices.Read(ctx, ref)
	if err != nil {
		return err
	}
	bad := slices.DeleteFunc(found.Errors(), func(p appdef.Problem) bool {
		return !strings.HasPrefix(p.File, "metainfo") || p.Kind == appdef.NoInstance
	})
	if err := exit.OfProblems(bad); err != nil {
		pkg.Close()
		return err
	}
	c.pkg = pkg
	return nil
}

// settings are the dictionary global that the script is told: the package's for clients, and --config over them.
func (c *client) settings() (map[string]string, error) {
	user, _, _ := strings.Cut(apps.Asker(), "@")
	settings := map[string]string{installDir: c.dest, "app_user": user}
	words := []string{"{app_install_dir}", c.dest, "{app_user}", user}
	if c.name != "" {
		settings["app_name"] = c.name
		words = append(words, "{app_name}", c.name)
	}
	fill := strings.NewReplacer(words...).Replace
	add := func(name string, text []byte) error {
		global, err := clientSettings(name, text)
		if err != nil {
			return err
		}
		for key, value := range global {
			settings[key] = fill(value)
		}
		err = c.ownFolder(name, settings[installDir])
		settings[installDir] = c.dest
		return err
	}
	text, err := fs.ReadFile(c.pkg.Package, clientDefaults)
	switch {
	case err == nil:
		err = add(clientDefaults, text)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return nil, exit.Default(exit.Definition, err)
	}
	given, err := openapp.ReadDocument(c.one("--config"))
	if err == nil && given != nil {
		err = add(given.Name, given.Data)
	}
	return settings, err
}

// ownFolder refuses a document that installs elsewhere: only --dest is known to be empty, and what is there is deleted.
func (c *client) ownFolder(name, dir string) error {
	below, err := filepath.Rel(c.dest, dir)
	switch {
	case err != nil || !filepath.IsLocal(below):
		return exit.With(exit.Definition, fmt.Errorf("%s: /global/%s: got %s, want none or {app_install_dir}: "+
			"the client is installed in --dest %s", name, installDir, store.Printable(dir), c.dest))
	case below != ".":
		fmt.Fprintf(c.Err, "warning: %s: /global/%s: got %s, which is ignored: the client is installed in --dest %s\n",
			name, installDir, store.Printable(dir), c.dest)
	}
	return nil
}

// clientSettings are the global section of a document.
func clientSettings(name string, text []byte) (map[string]string, error) {
	var in struct{ Global map[string]json.RawMessage }
	if err := json.Unmarshal(text, &in); err != nil || in.Global == nil {
		return nil, exit.With(exit.Definition,
			fmt.Errorf("%s: want an object with global, as in %s", name, clientDefaults))
	}
	global := map[string]string{}
	for key, value := range in.Global {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value) // a number, true or false
		}
		global[key] = text
	}
	return global, nil
}

// mustBeEmpty makes the folder if it is missing. A script's install_packages takes away what is in it.
func mustBeEmpty(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return exit.With(exit.Forbidden, err)
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("%s: got a folder that is not empty, want a new or an empty one: "+
			"INSTALL takes away what lies in it", dir)
	}
	return exit.With(exit.Forbidden, err)
}

// install runs INSTALL, beside a copy of the package, which goes again.
func (c *client) install(ctx context.Context, settings map[string]string) (err error) {
	at, err := os.MkdirTemp("", "muster-client-")
	if err != nil {
		return exit.With(exit.Forbidden, err)
	}
	defer func() { err = errors.Join(err, exit.With(exit.Forbidden, os.RemoveAll(at))) }()
	root, err := os.OpenRoot(at)
	if err == nil {
		err = errors.Join(slidershell.LayOut(root, "library"), root.Mkdir("definition", 0o755), root.Close())
	}
	if err != nil {
		return exit.With(exit.Forbidden, err)
	}
	if err := packages.Copy(c.pkg.Package.FS, filepath.Join(at, "definition")); err != nil {
		return exit.With(exit.Definition, fmt.Errorf("copy %s: %w", c.title, err))
	}
	told, err := json.Marshal(map[string]any{
		"roleCommand":     "INSTALL",
		"hostLevelParams": map[string]string{"package_list": plan.PackageList(c.pkg.Packages)},
		"configurations":  map[string]any{"global": settings},
	})
	if err == nil {
		err = os.WriteFile(filepath.Join(at, "command.json"), told, 0o600) // it may hold passwords
	}
	if err != nil {
		return exit.With(exit.Internal, err)
	}
	return c.runInstall(ctx, at)
}

// runInstall runs the script as this user, in the temporary folder: what Execute logs goes with it.
func (c *client) runInstall(ctx context.Context, at string) error {
	program, name, script := "python3", "CLIENT", []string{"-c", plainInstall}
	folder := filepath.Join(at, "definition", "package")
	if c.own != nil {
		name = c.own.Name
		program = cmp.Or(c.own.Settings.Python, program)
		if c.own.CommandScript != nil {
			script = []string{filepath.Join(folder, c.own.CommandScript.Script)}
		}
	}
	told := []string{
		"INSTALL", filepath.Join(at, "command.json"), folder, filepath.Join(at, "answer.json"), "WARNING", at,
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	cmd := exec.CommandContext(ctx, program, slices.Concat(script, told)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = at, c.Err, c.Err
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the terminal's Ctrl-C is for us alone
	library := strings.Trim(filepath.Join(at, "library")+":"+os.Getenv("PYTHONPATH"), ":")
	cmd.Env = append(os.Environ(), "PYTHONPATH="+library)
	err := cmd.Run()
	if ctx.Err() != nil {
		// The temporary folder makes the variable one that no other process has.
		return exit.With(exit.CtrlC, errors.Join(killAll(ctx, "PYTHONPATH", library),
			fmt.Errorf("%s: INSTALL of %s was interrupted; %s may hold a part of the client", c.title, name, c.dest)))
	}
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.With(1, fmt.Errorf("%s: INSTALL of %s ended with %d", c.title, name, failed.ExitCode()))
	}
	return exit.With(exit.Forbidden, err)
}

// killAll kills the processes that have a variable, and waits for their end. Execute gives each of its commands a
// session of its own, which outlives the script.
func killAll(ctx context.Context, name, value string) error {
	here, err := proc.SelfFacts()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), apps.Patience) // ctx is over
	defer cancel()
	return proc.Host{}.KillOrphans(ctx, proc.Leftover{
		Boot: here.Boot, PidNS: here.PidNS, Env: map[string]string{name: value},
	})
}

// configs are the configurations that the app publishes, by the paths of their files, for a client without a script of
// its own.
func (c *client) configs(ctx context.Context, settings map[string]string) (map[string][]byte, error) {
	if c.of == nil || c.own != nil && c.own.CommandScript != nil {
		return nil, nil
	}
	files := c.pkg.ConfigFiles
	if c.own != nil {
		files = slices.Concat(files, c.own.ConfigFiles)
	}
	dir, err := c.confDir(settings[clientRoot])
	if err != nil || len(files) == 0 {
		return nil, err
	}
	f, v, err := c.of.view(ctx)
	if err != nil {
		return nil, err
	}
	if !isLive(c.of.state(&f)) {
		return nil, exit.With(answerNo, fmt.Errorf("%s does not run, and publishes no configuration for its client: "+
			"muster slider start %s first", c.of.name, c.of.name))
	}
	formats := map[string]string{"xml": "xml", "hadoop-xml": "xml", "properties": "properties", "json": "json"}
	texts := map[string][]byte{}
	for _, file := range files {
		format := formats[file.Type]
		if format == "" || !filepath.IsLocal(file.FileName) {
			fmt.Fprintf(c.Err, "note: %s is not written: type %s; muster slider registry --name %s --getconf %s "+
				"prints the configuration\n", file.FileName, file.Type, c.of.name, file.Dictionary)
			continue
		}
		text, err := c.of.published(v, file.Dictionary, format)
		if err != nil {
			return nil, err
		}
		texts[filepath.Join(dir, file.FileName)] = text
	}
	return texts, nil
}

// confDir is where the configurations go: conf of client_root, else the folder of the client itself.
func (c *client) confDir(root string) (string, error) {
	if root == "" {
		return c.dest, nil
	}
	dir := root
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(c.dest, dir)
	}
	if below, err := filepath.Rel(c.dest, dir); err != nil || !filepath.IsLocal(below) {
		return "", exit.With(exit.Definition,
			fmt.Errorf("%s: %s: got %s, want a folder below {app_install_dir}", clientDefaults, clientRoot, root))
	}
	return filepath.Join(dir, "conf"), nil
}
