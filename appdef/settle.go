package appdef

import (
	"errors"
	"slices"
	"strings"
)

// Settle reads the keys of the table (Keys) into the App's settings and limits, over their defaults. The App's
// components, export groups and commands must exist already; earlier settings are dropped. It returns everything that
// is wrong with the keys themselves; Validate judges the result.
func Settle(a *App, src Sources) Problems {
	s := settling{app: a, src: src, table: keys()}
	if a.Origins == nil {
		a.Origins = map[string]string{}
	}
	s.found = append(src.twice(), src.misplaced(s.table)...)
	s.dialect()
	s.defaults()
	for _, key := range s.table {
		if key.app != nil {
			s.applyApp(key)
			continue
		}
		for i := range a.Components {
			s.applyComponent(key, &a.Components[i])
		}
	}
	s.shadowed()
	s.clusterExports()
	s.framework()
	s.oneEnds()
	s.commands()
	a.defaultScopes()
	a.Settings.GangBudget = a.gangBudget()
	a.Settings.AllowedPorts = a.Config[AllowedPortsKey]
	return s.found.Sort()
}

// AllowedPortsKey has the ports that instances may take, of the app or of one component.
const AllowedPortsKey = "site.global.slider.allowed.ports"

const (
	roleKey      = "muster.role"
	commandKey   = "muster.command"
	clusterKey   = "muster.cluster.export"
	frameworkKey = "muster.framework"
)

// settling is one run of Settle.
type settling struct {
	app   *App
	src   Sources
	table keyTable
	found Problems
}

// dialect is the dialect that a package itself names.
func (s *settling) dialect() {
	if v, ok := s.src.find("", dialectKey); ok && slices.Contains(dialects(), v.Text) {
		s.app.Dialect = v.Text
	}
}

// defaults sets the defaults that hold before keys are read. The roles come first, because other defaults depend on
// them.
func (s *settling) defaults() {
	s.app.Settings = AppSettings{Framework: "auto"}
	s.app.Settings.Barrier, s.app.Settings.StageTimeout = 1800, 1800
	role, _ := s.table.of(roleKey)
	for i := range s.app.Components {
		c := &s.app.Components[i]
		c.Settings = ComponentSettings{Role: roleByName(c.Name)}
		s.applyComponent(role, c)
		c.Settings.Restart = Restart{Budget: 5, Window: 300, BackoffMin: 1, BackoffMax: 60, Refill: "checkpoint"}
		c.Settings.Stop.Signal = "TERM"
		c.Settings.StatusInterval = 5
		if c.Settings.Role == RoleService {
			c.Settings.Restart.Budget = -1 // services restart without limit
			continue
		}
		one := 1
		c.Settings.Complete.MinFailed = &one
	}
}

// roleByName is a component's role by its name; letter case does not matter.
func roleByName(component string) Role {
	switch strings.ToLower(component) {
	case "ps", "server":
		return RolePS
	case "tensorboard", "jupyter", "notebook":
		return RoleService
	case "evaluator":
		return RoleEvaluator
	case "chief", "chiefworker", "master":
		return RoleChief
	}
	return RoleWorker
}

func (s *settling) applyApp(key Key) {
	v, ok := s.src.find("", key.Name)
	if !ok {
		return
	}
	s.app.Origins[key.Name] = v.String()
	s.judge(key, v, func(text string) error { return key.app(&s.app.Settings, text) })
}

func (s *settling) applyComponent(key Key, c *Component) {
	names := []string{key.Name}
	prefix, family := key.family()
	if family {
		names = s.src.family(c.Name, prefix)
	}
	for _, name := range names {
		v, ok := s.src.find(c.Name, name)
		if !ok || family && s.ownKey(name) {
			continue
		}
		s.app.Origins[c.Name+"."+name] = v.String()
		s.judge(key, v, func(text string) error { return key.component(c, strings.TrimPrefix(name, prefix), text) })
	}
}

// ownKey tells whether a name is a key of its own, and so no member of a family: muster.env.inherit is no variable.
func (s *settling) ownKey(name string) bool {
	return slices.ContainsFunc(s.table, func(k Key) bool { return k.Name == name })
}

// shadowed judges global values that every component overrides: they may be wrong all the same.
func (s *settling) shadowed() {
	for _, key := range s.table {
		if key.app != nil {
			continue
		}
		names, prefix := []string{key.Name}, ""
		if p, ok := key.family(); ok {
			names, prefix = s.src.family("", p), p
		}
		for _, name := range names {
			if v, ok := s.src.find("", name); ok && (name == key.Name || !s.ownKey(name)) {
				var nobody Component
				s.judge(key, v, func(text string) error {
					return key.component(&nobody, strings.TrimPrefix(name, prefix), text)
				})
			}
		}
	}
}

// judge stores a value or notes the problem. It judges a global value once for each component; Sort keeps one of the
// equal problems.
func (s *settling) judge(key Key, v Value, store func(string) error) {
	text := v.Text
	got := quote(text)
	if v.Null {
		text, got = "null", "null"
	}
	err := error(wanted{want: "a text, a number, true or false"})
	if !v.Null || key.null {
		err = store(text)
	}
	if bad, ok := errors.AsType[wanted](err); ok {
		if bad.got != "" {
			got = bad.got
		}
		s.found = append(s.found, v.Problem(got, bad.want, bad.hint))
	}
}

// clusterExports resolves muster.cluster.export, or takes the first address that a component exports.
func (s *settling) clusterExports() {
	for i := range s.app.Components {
		c := &s.app.Components[i]
		if text := c.Settings.ClusterExport.Name; text != "" {
			c.Settings.ClusterExport = s.app.ParseExportRef(text)
			if !slices.Contains(c.CompExports, c.Settings.ClusterExport) {
				v, _ := s.src.find(c.Name, clusterKey)
				s.found = append(s.found, v.Problem(quote(text), OneOf(refNames(c.CompExports), "an export of "+c.Name+
					"'s compExports"), didYouMean(text, refNames(c.CompExports))))
			}
			continue
		}
		for _, ref := range c.CompExports {
			if export, ok := s.app.Export(ref); ok && isHostPort(export.Value) {
				c.Settings.ClusterExport = ref
				break
			}
		}
	}
}

func refNames(refs []ExportRef) []string {
	names := make([]string, len(refs))
	for i, ref := range refs {
		names[i] = ref.String()
	}
	return names
}

// framework resolves auto.
func (s *settling) framework() {
	settings := &s.app.Settings
	if settings.Framework != "auto" {
		settings.FrameworkWhy = frameworkKey
		return
	}
	name := strings.ToLower(s.app.Name)
	switch {
	case slices.Contains(Frameworks(), name):
		settings.Framework, settings.FrameworkWhy = name, "the application's name"
	case s.exportsAddress(RolePS) && s.exportsAddress(RoleWorker):
		settings.Framework, settings.FrameworkWhy = "tensorflow", "a ps and a worker export host:port"
	default:
		settings.Framework, settings.FrameworkWhy = "none", "the application's name is no known framework, and no ps "+
			"and worker export host:port"
	}
}

func (s *settling) exportsAddress(role Role) bool {
	return slices.ContainsFunc(s.app.Components, func(c Component) bool {
		return c.Settings.Role == role && c.Settings.ClusterExport != ExportRef{}
	})
}

// commands chooses what START runs: muster.command, else what muster.start says. Without both it is metainfo's
// commands, else its commandScript if the package has that file, else the framework's own command.
func (s *settling) commands() {
	for i := range s.app.Components {
		c := &s.app.Components[i]
		start, ok := c.StartCommand()
		// with a script, or if the definition asks for it
		builtin := c.CommandScript != nil || c.Settings.Start == StartBuiltin
		if c.Settings.Start == "" {
			c.Settings.Start = StartBuiltin
			if ok || c.CommandScript != nil && !c.CommandScript.Missing {
				c.Settings.Start = StartScript
			}
		}
		switch {
		case c.Settings.Command != "":
			c.Settings.CommandFrom = commandKey
		case c.Settings.Start == StartBuiltin && builtin && s.app.Builtin():
			c.Settings.CommandFrom = StartBuiltin
		case ok:
			c.Settings.CommandFrom = "commands"
			if start.Type != "PYTHON" {
				c.Settings.Command = start.Exec
			}
		case c.CommandScript != nil:
			c.Settings.CommandFrom = "commandScript"
		}
	}
}

// defaultScopes sets muster.restart of components without it. It depends on the counts: a TensorFlow app without
// parameter servers trains synchronously.
func (a *App) defaultScopes() {
	a.Settings.RestartDefault = a.restartDefault()
	for i := range a.Components {
		settings := &a.Components[i].Settings
		if settings.Restart.Explicit {
			continue
		}
		settings.Restart.Scope = a.Settings.RestartDefault
		alone := settings.Role == RoleService || settings.Role == RoleEvaluator // no other instance trains with it
		if alone && settings.Restart.Scope != ScopeNever {
			settings.Restart.Scope = ScopeInstance
		}
	}
}

func (a *App) restartDefault() scope {
	if a.Dialect == "pai" || a.Dialect == "hbox" {
		return ScopeNever
	}
	hasPS := slices.ContainsFunc(a.Components, func(c Component) bool {
		return c.Settings.Role == RolePS && c.Instances > 0
	})
	switch a.Settings.Framework {
	case "none":
		return ScopeInstance
	case "tensorflow", "tensor2tensor", "mxnet", "xflow", "xdl", "lightlda", "tony":
		if hasPS {
			return ScopeInstance
		}
	}
	return ScopeGang
}

// gangBudget is the restart budget of the whole gang: that of the first component that the barrier waits for.
func (a *App) gangBudget() Restart {
	for _, c := range a.Components {
		if c.Settings.Role != RoleService {
			budget := c.Settings.Restart
			budget.Scope, budget.Explicit = ScopeGang, false
			return budget
		}
	}
	return Restart{Scope: ScopeGang, Budget: 5, Window: 300, BackoffMin: 1, BackoffMax: 60, Refill: "checkpoint"}
}
