package prepare

import (
	"path/filepath"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/plan"
)

// lacksJava says that the Java which the scripts are told of is not there; empty: it is, or they are told of none. It
// is no failure: many definitions name a Java that nothing of theirs runs.
func (c *Container) lacksJava(p plan.Plan) string {
	if p.Script == nil || p.Script.JavaHome == "" || len(appdef.Placeholders(p.Script.JavaHome)) > 0 {
		return "" // of a placeholder without a value the plan warns
	}
	program, where := filepath.Join(p.Script.JavaHome, "bin/java"), "on this host"
	there := files.IsFile(program)
	if p.Root.Kind == plan.RootImage {
		where = "in the image " + p.Root.Image
		f, err := c.image.Open(program)
		if there = err == nil; there {
			there = f.Close() == nil
		}
	}
	if there {
		return ""
	}
	return "java_home " + p.Script.JavaHome + ": no " + program + " " + where + "; install it there, or give --set " +
		"JAVA_HOME=PATH"
}
