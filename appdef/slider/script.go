package slider

import (
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/muster-agent/muster/appdef"
)

// scriptTimeout is Slider's timeout of a script that names none, or 0.
const scriptTimeout = 600

func (l *loading) commandScript(c cursor) *appdef.CommandScript {
	s, ok := c.object("commandScript")
	if !ok {
		return nil
	}
	s.knows(fields[CommandScript]())
	read := appdef.CommandScript{
		Script: s.required("script"), Type: s.text("scriptType"),
		Timeout: appdef.Seconds(s.whole("timeout", 0, 0)),
	}
	inside(s, "script", read.Script)
	switch strings.ToUpper(read.Type) {
	case "", "PYTHON":
		read.Type = "PYTHON"
	default:
		s.doc.add(s.at("scriptType").Problem(appdef.Quote(read.Type), "PYTHON",
			appdef.DidYouMean(read.Type, []string{"PYTHON"})))
	}
	if read.Timeout == 0 {
		read.Timeout = scriptTimeout
	}
	read.Missing = !l.hasScript(read.Script)
	return &read
}

func (l *loading) commands(c cursor) []appdef.Command {
	types, names := []string{"SHELL", "PYTHON"}, map[string]bool{}
	var read []appdef.Command
	for _, k := range c.objects("commands") {
		k.knows(fields[Command]())
		command := appdef.Command{
			Exec: k.required("exec"), Name: orElse(k.text("name"), "START"),
			Type: orElse(k.text("type"), "SHELL"),
		}
		if !slices.Contains(types, command.Type) {
			k.doc.add(k.at("type").Problem(appdef.Quote(command.Type), "SHELL or PYTHON",
				spelling(command.Type, types)))
		}
		if names[command.Name] {
			k.bad("a second command "+command.Name, "one", "")
		}
		names[command.Name] = true
		if command.Type == "PYTHON" {
			inside(k, "exec", command.Exec)
			if command.Missing = !l.hasScript(command.Exec); command.Missing && fs.ValidPath(command.Exec) {
				k.doc.add(l.noScript(k.at("exec"), command.Exec))
			}
		}
		read = append(read, command)
	}
	return read
}

// hasScript tells whether the package has the script; its path is relative to package/.
func (l *loading) hasScript(script string) bool {
	if !fs.ValidPath(script) {
		return false
	}
	info, err := fs.Stat(l.fsys, path.Join("package", script))
	return err == nil && info.Mode().IsRegular()
}

// noScript is the problem of a missing script, with the name that was probably meant.
func (l *loading) noScript(at appdef.Place, script string) appdef.Problem {
	hint := appdef.DidYouMean(script, l.scripts())
	return at.Problem("no file package/"+script, "a script in the package", hint)
}

// scripts lists the package's Python files, relative to package/, up to a limit.
func (l *loading) scripts() []string {
	const most = 1000
	var found []string
	// for a hint: what cannot be read is not meant
	_ = fs.WalkDir(l.fsys, "package/scripts", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fs.SkipDir
		case len(found) == most:
			return fs.SkipAll
		case d.Type().IsRegular() && path.Ext(name) == ".py":
			found = append(found, strings.TrimPrefix(name, "package/"))
		}
		return nil
	})
	return found
}

// missingScripts reports missing scripts that START would run. If START runs something else, such as the framework's
// own command, no script is needed.
func (l *loading) missingScripts() {
	if !slices.Contains(appdef.Frameworks(), l.app.Settings.Framework) {
		return // once its name is right, it may need none
	}
	for i, c := range l.app.Components {
		if c.Category != "CLIENT" && c.Settings.CommandFrom == "commandScript" && c.CommandScript.Missing &&
			c.CommandScript.Script != "" {
			l.found = append(l.found, l.noScript(l.app.Places[appdef.Pointer("components", strconv.Itoa(i),
				"command_script", "script")], c.CommandScript.Script))
		}
	}
}
