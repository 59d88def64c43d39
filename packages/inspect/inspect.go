package inspect

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/sign"
)

// Inspection is the answer of muster package inspect --json.
type Inspection struct {
	Version    int             `json:"version"`
	App        string          `json:"app"`
	Name       string          `json:"name"`
	Release    string          `json:"release"`
	Schema     string          `json:"schema"`
	About      string          `json:"about"`
	Framework  string          `json:"framework"`
	Components []component     `json:"components"`
	Exports    []export        `json:"exports"`
	Files      []file          `json:"files"`
	SHA256     string          `json:"sha256"`    // of the archive; empty for a folder
	Signature  *sign.Signature `json:"signature"` // beside the archive, not checked; null: none
}

// component is what a package says of one component.
type component struct {
	Name      string `json:"name"`
	Instances int    `json:"instances"`
	Role      string `json:"role"`
	MemoryMB  int    `json:"memory_mb"` // -1: as much as the launcher grants
	VCores    int    `json:"vcores"`
	GPUs      int    `json:"gpus"`
	Command   string `json:"command"` // where its command is written: muster.command, commands, commandScript, builtin
}

// export is one published value.
type export struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	Value string `json:"value"` // with placeholders
}

// file is one file of a package, or one link.
type file struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	Link   string `json:"link,omitempty"`
}

// Package reads an opened package: ref is its name on the command line, app its definition, signature the path of the
// archive's signature, which may be absent.
func Package(ref string, app appdef.App, pkg *packages.Package, signature string) (Inspection, error) {
	i := Inspection{
		Version: 1, App: ref, Name: app.Name, Release: app.Release, Schema: app.Schema, About: app.Comment,
		Framework: app.Settings.Framework, Components: componentsOf(app), Exports: exportsOf(app), SHA256: pkg.Digest,
	}
	var err error
	if i.Files, err = filesOf(pkg); err != nil {
		return i, fmt.Errorf("inspect %s: %w", ref, err)
	}
	if i.Signature, err = signatureOf(pkg, signature); err != nil {
		return i, fmt.Errorf("inspect %s: signature: %w", ref, err)
	}
	return i, nil
}

func componentsOf(app appdef.App) []component {
	out := []component{}
	for _, c := range app.Components {
		out = append(out, component{
			Name: c.Name, Instances: c.Instances, Role: string(c.Settings.Role), MemoryMB: c.Limits.MemoryMB,
			VCores: c.Limits.VCores, GPUs: c.Limits.GPUs, Command: c.Settings.CommandFrom,
		})
	}
	return out
}

func exportsOf(app appdef.App) []export {
	out := []export{}
	for _, g := range app.ExportGroups {
		for _, e := range g.Exports {
			out = append(out, export{Group: g.Name, Name: e.Name, Value: e.Value})
		}
	}
	return out
}

// filesOf lists the files in the order of their paths.
func filesOf(tree fs.FS) ([]file, error) {
	out := []file{}
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f := file{Path: path}
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			f.Link, err = fs.ReadLink(tree, path)
		case d.Type().IsRegular():
			f.Bytes, f.SHA256, err = sum(tree, path)
		default:
			err = fmt.Errorf("%s: got a %s, want files, folders and links", path, packages.KindName(d.Type()))
		}
		out = append(out, f)
		return err
	})
	return out, err
}

func sum(tree fs.FS, path string) (size int64, digest string, err error) {
	f, err := tree.Open(path)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	h := sha256.New()
	if size, err = io.Copy(h, f); err != nil {
		return 0, "", fmt.Errorf("%s: %w", path, err)
	}
	return size, hex.EncodeToString(h.Sum(nil)), nil
}

// signatureOf reads the signature beside an archive, unchecked; nil: there is none.
func signatureOf(pkg *packages.Package, path string) (*sign.Signature, error) {
	if path == "" || pkg.Folder {
		return nil, nil // a folder cannot be signed
	}
	s, err := sign.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // none is an answer
	}
	return &s, err
}

// Print writes the inspection for people.
func (i Inspection) Print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n", packages.Printable(strings.Join(strings.Fields(i.Name+" "+i.Release), " ")))
	for _, row := range [][2]string{
		{"about", i.About}, {"schema", i.Schema}, {"framework", i.Framework}, {"sha256", i.SHA256},
	} {
		if row[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", row[0], packages.Printable(row[1]))
		}
	}
	if i.Signature != nil {
		fmt.Fprintf(w, "signature\tby key %s, not checked: %s\n", i.Signature.KeyID,
			packages.Printable(i.Signature.Comment))
	} else if i.SHA256 != "" {
		fmt.Fprintln(w, "signature\tnone")
	}
	i.printComponents(w)
	if len(i.Exports) > 0 {
		fmt.Fprint(w, "\nEXPORT\tVALUE\n")
	}
	for _, e := range i.Exports {
		fmt.Fprintf(w, "%s\t%s\n", packages.Printable(e.Group+"."+e.Name), packages.Printable(e.Value))
	}
	fmt.Fprint(w, "\nFILE\tBYTES\tSHA256\n")
	for _, f := range i.Files {
		if f.Link != "" {
			fmt.Fprintf(w, "%s\t\t-> %s\n", packages.Printable(f.Path), packages.Printable(f.Link))
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", packages.Printable(f.Path), f.Bytes, f.SHA256)
	}
	return w.Flush()
}

func (i Inspection) printComponents(w io.Writer) {
	fmt.Fprint(w, "\nCOMPONENT\tINSTANCES\tROLE\tMEMORY\tVCORES\tGPUS\tCOMMAND\n")
	for _, c := range i.Components {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%d\t%s\n", packages.Printable(c.Name), c.Instances, c.Role,
			limit(c.MemoryMB, " MB"), limit(c.VCores, ""), c.GPUs, c.Command)
	}
}

// limit prints a limit that may be all that is granted.
func limit(n int, unit string) string {
	if n == appdef.Max {
		return "max"
	}
	return strconv.Itoa(n) + unit
}
