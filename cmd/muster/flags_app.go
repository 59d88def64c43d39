package main

import "path/filepath"

// appFlags are the flags that choose and change the definition; every verb that takes APP has them.
type appFlags struct{ appChoices }

func (f *appFlags) register(flags flagSet) {
	flags.StringVar(&f.template, "template", "", "appConfig `FILE` in place of the package's")
	flags.StringVar(&f.resources, "resources", "", "resources `FILE` in place of the package's")
	flags.StringArrayVar(&f.set, "set", nil, "[COMPONENT|global:]KEY=VALUE: change one setting; repeatable, the last wins")
	flags.StringArrayVar(&f.instances, "instances", nil, "`COMPONENT=N,…`: how many of each; components not named keep theirs")
	flags.StringVar(&f.paiVersion, "pai-version", "", "generation of PAI that a job file is read as: 0.5 (QIZHI), 0.14 (SCM) or 1 (default: told from its fields)")
	flags.BoolVar(&f.outputUser, "pai-output-user", false, "a job file without outputDir leaves its output in /Output/USER/JOB, not in /Output/JOB")
}

// args are the same choices as arguments for an agent; paths become absolute.
func (f *appFlags) args() ([]string, error) {
	var out []string
	for flag, path := range map[string]string{"--template": f.template, "--resources": f.resources} {
		if path == "" {
			continue
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		out = append(out, flag, abs)
	}
	for _, s := range f.set {
		out = append(out, "--set", s)
	}
	for _, s := range f.instances {
		out = append(out, "--instances", s)
	}
	if f.paiVersion != "" {
		out = append(out, "--pai-version", f.paiVersion)
	}
	if f.outputUser {
		out = append(out, "--pai-output-user")
	}
	return out, nil
}
