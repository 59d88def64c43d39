package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/pai"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
)

// jobFile is what a job file of PAI or QIZHI is called inside a package.
const jobFile = "job.json"

// stdinRef is the APP that is read from stdin.
const stdinRef = "-"

// mostJob bounds a job file, in bytes.
const mostJob = 8 << 20

// jobFlags say how a job file is read.
type jobFlags struct {
	paiVersion string
	outputUser bool
}

func (f *jobFlags) register(flags flagSet) {
	flags.StringVar(&f.paiVersion, "pai-version", "", "generation of PAI that a job file is read as: 0.5 (QIZHI), 0.14 (SCM) or 1 (default: told from its fields)")
	flags.BoolVar(&f.outputUser, "pai-output-user", false, "a job file without outputDir leaves its output in /Output/USER/JOB, not in /Output/JOB")
}

func (f *jobFlags) args() []string {
	var out []string
	if f.paiVersion != "" {
		out = append(out, "--pai-version", f.paiVersion)
	}
	if f.outputUser {
		out = append(out, "--pai-output-user")
	}
	return out
}

// openJob opens a job file, told by its content; ok is false for anything else.
func openJob(ref string) (from source, ok bool, err error) {
	data, path, err := readJob(ref)
	if err != nil || data == nil {
		return source{}, false, err
	}
	pkg, err := packages.Single(jobFile, data)
	if err != nil {
		return source{}, false, exit.With(exit.Internal, err)
	}
	sum := sha256.Sum256(data)
	pkg.Name, pkg.Path, pkg.Digest = filepath.Base(path), path, hex.EncodeToString(sum[:])
	return source{pkg: pkg, ref: path, signature: path + sign.Ending, job: data}, true, nil
}

// readJob is the text of a job file and its absolute path; nil where ref is no such file.
func readJob(ref string) (data []byte, path string, err error) {
	if ref == stdinRef {
		data, err = io.ReadAll(io.LimitReader(os.Stdin, mostJob+1))
		switch {
		case err != nil:
			return nil, "", exit.With(exit.Usage, fmt.Errorf("app -: %w", err))
		case len(data) > mostJob:
			return nil, "", exit.With(exit.Definition, fmt.Errorf("app -: got more than %d MiB on stdin, want a job file", mostJob>>20))
		}
		return append([]byte{}, data...), ref, nil // whatever it is, it can be nothing else
	}
	at, err := parseLocation(ref)
	if err != nil || at.remote() || at.digest != "" {
		return nil, "", nil //nolint:nilerr // whoever opens it says what is wrong
	}
	name, err := at.local()
	if err != nil {
		return nil, "", nil //nolint:nilerr // likewise
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, "", nil //nolint:nilerr // likewise
	}
	large := info.Size() > mostJob
	if data, err = beginning(name, large); err != nil || !pai.Is(data) {
		return nil, "", nil //nolint:nilerr // likewise
	}
	if large {
		return nil, "", exit.With(exit.Definition, fmt.Errorf("app %s: got more than %d MiB, want a job file", ref, mostJob>>20))
	}
	return data, absolute(name), nil
}

// beginning is a file, of a large one as much as tells what it is.
func beginning(name string, large bool) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	most := int64(mostJob)
	if large {
		most = 64 << 10
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// jobIn is the job file of a package that is one: its top has job.json and no metainfo.
func jobIn(from source) []byte {
	if from.job != nil {
		return from.job
	}
	for _, name := range []string{"metainfo.json", "metainfo.xml"} {
		if _, err := fs.Stat(from.pkg.FS, name); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	data, err := fs.ReadFile(from.pkg.FS, jobFile)
	if err != nil {
		return nil
	}
	return data
}

// loadJob reads a job file. What replaces the documents of a package has no place there.
func (f *appFlags) loadJob(from source, data []byte) (appdef.App, appdef.Problems, error) {
	for flag, path := range map[string]string{"--template": f.template, "--resources": f.resources} {
		if path != "" {
			return appdef.App{}, nil, exit.Usagef("%s: %s is a job file, which has none of the documents of a package; --set changes its settings", flag, from.ref)
		}
	}
	name := jobFile
	if from.job != nil && from.ref != stdinRef {
		name = filepath.Base(from.ref)
	}
	app, found := pai.Load(data, pai.Options{Name: name, Version: f.job.paiVersion, OutputUser: f.job.outputUser, Set: f.set, Instances: f.instances})
	return app, found, nil
}

// keepJob writes a job file that came on stdin where the agents find it.
func (r *runner) keepJob() error {
	if r.app.ref != stdinRef {
		return nil
	}
	path := filepath.Join(r.workDir, "."+jobFile) // a person's own job file may lie there
	if err := os.WriteFile(path, r.app.source.job, 0o644); err != nil {
		return exit.With(exit.Forbidden, fmt.Errorf("keep the job file: %w", err))
	}
	r.app.ref = path
	return nil
}
