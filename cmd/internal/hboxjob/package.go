package hboxjob

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/cmd/internal/madeapp"
	"github.com/muster-agent/muster/packages"
)

// filesDir is where a submission's files lie in package/.
const filesDir = "files"

// Package makes the package of a submission in a folder of its own below dir, which remove takes away again.
func Package(dir string, job hbox.Submission) (_ string, remove func() error, err error) {
	made, remove, err := madeapp.Make(dir, func(dir string) error {
		p := packing{app: job.App, dir: dir, taken: map[string]string{}}
		return p.pack(job)
	})
	if err != nil {
		err = fmt.Errorf("hbox-submit: %w", err)
	}
	return made, remove, err
}

// packing is one package in the making.
type packing struct {
	app   appdef.App
	dir   string
	taken map[string]string // what it is called → what it is
	files []string          // relative to the package
}

func (p *packing) pack(job hbox.Submission) error {
	if err := os.MkdirAll(filepath.Join(p.dir, "package", filesDir), 0o755); err != nil {
		return err
	}
	for _, locals := range [][]hbox.Local{job.Files, job.Archives, job.Jars} {
		for _, l := range locals {
			if err := p.bring(l, slices.Contains(job.Archives, l)); err != nil {
				return fmt.Errorf("%s %s: %w", l.Option, l.Path, err)
			}
		}
	}
	p.app.Config = maps.Clone(p.app.Config)
	if len(p.files) > 0 {
		p.app.Config["application.resources"] = strings.Join(p.files, ",")
	}
	return madeapp.Documents(p.dir, p.app)
}

// bring copies one file, folder or archive under its name.
func (p *packing) bring(l hbox.Local, archive bool) error {
	switch first, twice := p.taken[l.Alias]; {
	case l.Alias == "" || l.Alias == "." || l.Alias == ".." || strings.ContainsAny(l.Alias, "/\\,") ||
		slices.Contains(appdef.OwnNames(), l.Alias):
		return fmt.Errorf("got the name %q for it, want a plain name that is not muster's (%s)", l.Alias,
			strings.Join(appdef.OwnNames(), ", "))
	case twice:
		return fmt.Errorf("got the name %s for it, which %s has already", l.Alias, first)
	}
	p.taken[l.Alias] = l.Option + " " + l.Path
	local := strings.TrimPrefix(strings.TrimPrefix(l.Path, "file://"), "file:")
	info, err := os.Stat(local)
	if errors.Is(err, fs.ErrNotExist) {
		return errors.New("no such file or folder")
	}
	if err != nil {
		return err
	}
	name := path.Join(filesDir, l.Alias)
	to := filepath.Join(p.dir, "package", name)
	switch {
	case archive && !info.Mode().IsRegular():
		return errors.New("want an archive")
	case archive:
		p.app.Packages = append(p.app.Packages, appdef.Package{Type: archiveType(local), Name: name})
		return packages.CopyFile(local, to, info.Mode())
	case info.IsDir():
		p.app.Packages = append(p.app.Packages, appdef.Package{Type: "folder", Name: name})
		if err := os.Mkdir(to, 0o755); err != nil {
			return err
		}
		return packages.Copy(os.DirFS(local), to)
	case info.Mode().IsRegular():
		p.files = append(p.files, path.Join("package", name))
		return packages.CopyFile(local, to, info.Mode())
	}
	return errors.New("want a file or a folder")
}

// archiveType is the package type of an archive by its name; its content is what it is unpacked by.
func archiveType(name string) string {
	if ext := strings.ToLower(filepath.Ext(name)); ext == ".zip" || ext == ".jar" {
		return "zip"
	}
	return "tarball"
}
