package flags

import (
	"github.com/muster-agent/muster/shim/openapp"
)

// App are the flags that choose and change the definition; every verb that takes APP has them.
type App struct{ openapp.Choices }

// Register adds the flags.
func (f *App) Register(flags Set) {
	flags.StringVar(&f.Template, "template", "", "appConfig `FILE` in place of the package's")
	flags.StringVar(&f.Resources, "resources", "", "resources `FILE` in place of the package's")
	flags.StringArrayVar(&f.Set, "set", nil,
		"`[COMPONENT|global:]KEY=VALUE`: change one setting; repeatable, the last one wins")
	flags.StringArrayVarP(&f.Instances, "instances", "n", nil,
		"`COMPONENT=N,…`: how many instances of each component; N alone: of workers")
	flags.StringVar(&f.PAIVersion, "pai-version", "",
		"read a job file as PAI 0.5 (QIZHI), 0.14 (SCM) or 1 (default: by its fields)")
	flags.BoolVar(&f.OutputUser, "pai-output-user", false,
		"without outputDir, write output to /Output/USER/JOB, not /Output/JOB")
}
