package main

import (
	"debug/elf"
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/gpu"
)

// Set by the linker: -X main.version=… -X main.commit=….
var version, commit string

// versionInfo is the answer of muster version --json.
type versionInfo struct {
	Version   string  `json:"version"` // of muster: this one object has no version of its own form
	Commit    string  `json:"commit"`
	Go        string  `json:"go"`
	Static    bool    `json:"static"`     // needs no loader and no shared library
	GPUHelper *string `json:"gpu_helper"` // path of muster-gpu; null: not installed
	// Protocol is the span of versions that this muster speaks with the other agents of a run.
	Protocol registry.Proto `json:"protocol"`
}

func newVersion(s console.Streams) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "version", Short: "Print the version of muster", Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return console.PrintJSON(s.Out, readVersion())
			}
			fmt.Fprint(s.Out, readVersion())
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	return cmd
}

// String is the version for people.
func (v versionInfo) String() string {
	linked := "dynamically linked"
	if v.Static {
		linked = "static"
	}
	helper := "no muster-gpu"
	if v.GPUHelper != nil {
		helper = *v.GPUHelper
	}
	return fmt.Sprintf("muster %s (commit %s, %s, %s, %s)\nprotocol: %s\n", v.Version, v.Commit, v.Go, linked, helper,
		v.Protocol)
}

func readVersion() versionInfo {
	info := versionInfo{
		Version: ownVersion(), Commit: commit, Static: static("/proc/self/exe"), GPUHelper: gpu.FindHelper(),
		Protocol: registry.Spoken(),
	}
	if build, ok := debug.ReadBuildInfo(); ok {
		info.Go = build.GoVersion
		for _, s := range build.Settings {
			if s.Key == "vcs.revision" && info.Commit == "" {
				info.Commit = s.Value
			}
		}
	}
	if info.Commit == "" {
		info.Commit = "unknown"
	}
	return info
}

// ownVersion is the version of this muster, as the linker or Go's module has set it.
func ownVersion() string {
	if version != "" {
		return version
	}
	if build, ok := debug.ReadBuildInfo(); ok && build.Main.Version != "" {
		return build.Main.Version
	}
	return "unknown"
}

// static tells that a program asks for no loader (ELF's PT_INTERP).
func static(path string) bool {
	f, err := elf.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return false
		}
	}
	return true
}
