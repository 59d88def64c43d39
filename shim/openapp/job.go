package openapp

import (
	"context"
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
	"github.com/muster-agent/muster/shim/store"
)

// Stdin is the name of the APP on stdin.
const Stdin = "-"

// mostJob is the limit of a job file, in bytes.
const mostJob = 8 << 20

// openJob opens a job file, recognised by its content; ok is false for anything else.
func openJob(ctx context.Context, ref string) (from Source, ok bool, err error) {
	data, path, want, err := readJob(ctx, ref)
	if err != nil || data == nil {
		return Source{}, false, err
	}
	pkg, err := packages.Single(pai.JobFile, data)
	if err != nil {
		return Source{}, false, exit.With(exit.Internal, err)
	}
	sum := sha256.Sum256(data)
	pkg.Name, pkg.Path, pkg.Digest = filepath.Base(path), path, hex.EncodeToString(sum[:])
	if want != "" && want != pkg.Digest {
		err := fmt.Errorf("open job file %s: %w", path, &store.DigestError{Want: want, Got: pkg.Digest})
		return Source{}, false, exit.With(exit.Definition, err)
	}
	at := Location{path, want}
	return Source{Package: pkg, Ref: at.pinned(path), Signature: path + sign.Ending, Job: data}, true, nil
}

// readJob is the text of a job file, its absolute path and the digest that ref wants; nil if ref is not a job file.
func readJob(ctx context.Context, ref string) (data []byte, path, digest string, err error) {
	if ref == Stdin {
		data, err = io.ReadAll(io.LimitReader(os.Stdin, mostJob+1))
		switch {
		case err != nil:
			return nil, "", "", exit.With(exit.Usage, fmt.Errorf("app -: %w", err))
		case len(data) > mostJob:
			return nil, "", "", exit.With(exit.Definition,
				fmt.Errorf("app -: got more than %d MiB on stdin, want a job file", mostJob>>20))
		}
		return append([]byte{}, data...), ref, "", nil // stdin can be nothing else
	}
	at, err := ParseLocation(ref)
	if err != nil || at.Remote() {
		return nil, "", "", nil //nolint:nilerr // opening it as a package reports the error
	}
	name, err := at.local(ctx)
	if err != nil {
		return nil, "", "", nil //nolint:nilerr // likewise
	}
	info, err := os.Stat(name)
	if err != nil || !info.Mode().IsRegular() {
		return nil, "", "", nil //nolint:nilerr // likewise
	}
	large := info.Size() > mostJob
	if data, err = beginning(name, large); err != nil || !pai.Is(data) {
		return nil, "", "", nil //nolint:nilerr // likewise
	}
	if large {
		return nil, "", "", exit.With(exit.Definition, fmt.Errorf("app %s: got more than %d MiB, want a job file", ref,
			mostJob>>20))
	}
	if name, err = filepath.Abs(name); err != nil {
		return nil, "", "", exit.With(exit.Definition, err)
	}
	return data, name, at.Digest, nil
}

// beginning is a file's content; of a large file enough to recognise it.
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

// jobIn is the job file of a package that has one, with its name: job.json or job.yaml at its top, and no metainfo.
func jobIn(from Source) (data []byte, name string, err error) {
	switch {
	case from.Job != nil && from.Ref == Stdin:
		return from.Job, pai.JobFile, nil
	case from.Job != nil:
		return from.Job, filepath.Base(from.Ref), nil
	}
	for _, name := range []string{"metainfo.json", "metainfo.xml"} {
		if _, err := fs.Stat(from.Package.FS, name); !errors.Is(err, fs.ErrNotExist) {
			return nil, "", nil
		}
	}
	for _, file := range []string{pai.JobFile, "job.yaml", "job.yml"} {
		text, err := fs.ReadFile(from.Package.FS, file)
		switch {
		case errors.Is(err, fs.ErrNotExist): // a package without metainfo is told of
		case err != nil:
			return nil, "", exit.With(exit.Definition, fmt.Errorf("app %s: %w", from.Ref, err))
		case data != nil:
			err := fmt.Errorf("app %s: got %s and %s, want one job file in a folder; name the file that is meant",
				from.Ref, name, file)
			return nil, "", exit.With(exit.Definition, err)
		default:
			data, name = text, file
		}
	}
	return data, name, nil
}

// loadJob reads a job file. Flags that replace documents of a package are refused.
func (f *Choices) loadJob(from Source, data []byte, name string) (appdef.App, appdef.Problems, error) {
	for flag, path := range map[string]string{"--template": f.Template, "--resources": f.Resources} {
		if path != "" {
			return appdef.App{}, nil, exit.Usagef("%s: %s is a job file, which has none of the documents of a "+
				"package; --set changes its settings", flag, from.Ref)
		}
	}
	app, found := pai.Load(data, pai.Options{
		Name: name, Version: f.PAIVersion, OutputUser: f.OutputUser, Set: f.Set,
		Instances: f.Instances,
	})
	return app, found, nil
}
