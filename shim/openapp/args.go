package openapp

import (
	"os"
	"path/filepath"
	"strings"
)

// Args are the same choices as arguments for an agent; paths become absolute. Documents have their digest, so that an
// agent reads the same ones.
func (f *Choices) Args() ([]string, error) {
	var out []string
	for flag, path := range map[string]string{"--template": f.Template, "--resources": f.Resources} {
		if path == "" {
			continue
		}
		abs, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		if !strings.Contains(abs, Pin) {
			text, err := os.ReadFile(abs)
			if err != nil {
				return nil, err
			}
			abs += Pin + digestOf(text)
		}
		out = append(out, flag, abs)
	}
	for _, s := range f.Set {
		out = append(out, "--set", s)
	}
	for _, s := range f.Instances {
		out = append(out, "--instances", s)
	}
	if f.PAIVersion != "" {
		out = append(out, "--pai-version", f.PAIVersion)
	}
	if f.OutputUser {
		out = append(out, "--pai-output-user")
	}
	return out, nil
}
