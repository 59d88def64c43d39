package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/openapp"
)

// inspection is the answer of muster package inspect --json.
type inspection struct {
	Version    int                `json:"version"`
	App        string             `json:"app"`
	Name       string             `json:"name"`
	Release    string             `json:"release"`
	Schema     string             `json:"schema"`
	About      string             `json:"about"`
	Framework  string             `json:"framework"`
	Components []packageComponent `json:"components"`
	Exports    []packageExport    `json:"exports"`
	Files      []packageFile      `json:"files"`
	SHA256     string             `json:"sha256"`    // of the archive; empty for a folder
	Signature  *sign.Signature    `json:"signature"` // beside the archive, not checked; null: none
}

// packageComponent is what a package says of one component.
type packageComponent struct {
	Name      string `json:"name"`
	Instances int    `json:"instances"`
	Role      string `json:"role"`
	MemoryMB  int    `json:"memory_mb"` // -1: as much as the launcher grants
	VCores    int    `json:"vcores"`
	GPUs      int    `json:"gpus"`
	Command   string `json:"command"` // where its command is written: muster.command, commands, commandScript, builtin
}

// packageExport is one published value.
type packageExport struct {
	Group string `json:"group"`
	Name  string `json:"name"`
	Value string `json:"value"` // with placeholders
}

// packageFile is one file of a package, or one link.
type packageFile struct {
	Path   string `json:"path"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256,omitempty"`
	Link   string `json:"link,omitempty"`
}

func newPackageInspect(s streams) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "inspect APP", Short: "Say what a package has: components, exports, files, digest, signature", Args: exactly("APP"),
		Long: `Says what a package is and has: its components with instances, memory, role and where their command is written, its
exports, its files with size and sha256, and for an archive its own sha256 and who says to have signed it: only
muster package verify checks that. Ends with 65 when it is no package or its definition has errors.`,
		Example:           "  muster package inspect catalog:tensorflow\n  muster package inspect app.zip --json",
		ValidArgsFunction: completeApp,
		RunE: func(cmd *cobra.Command, args []string) error {
			return inspectPackage(cmd.Context(), s, args[0], asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print it as JSON")
	return cmd
}

func inspectPackage(ctx context.Context, s streams, ref string, asJSON bool) error {
	as := openapp.Choices{Signed: true}
	l, err := as.Load(ctx, ref, s.err)
	if err != nil {
		return err
	}
	defer l.Close()
	i := inspection{
		Version: 1, App: ref, Name: l.Name, Release: l.Release, Schema: l.Schema, About: l.Comment, Framework: l.Settings.Framework,
		Components: packageComponents(l.App), Exports: packageExports(l.App), SHA256: l.Package.Digest,
	}
	if i.Files, err = packageFiles(l.Package); err != nil {
		return exit.With(exit.Definition, fmt.Errorf("inspect %s: %w", ref, err))
	}
	if i.Signature, err = signatureBeside(l.Source); err != nil {
		return exit.With(exit.Definition, fmt.Errorf("inspect %s: signature: %w", ref, err))
	}
	if asJSON {
		return printJSON(s.out, i)
	}
	return i.print(s.out)
}

func packageComponents(app appdef.App) []packageComponent {
	out := []packageComponent{}
	for _, c := range app.Components {
		out = append(out, packageComponent{
			Name: c.Name, Instances: c.Instances, Role: string(c.Settings.Role), MemoryMB: c.Limits.MemoryMB, VCores: c.Limits.VCores,
			GPUs: c.Limits.GPUs, Command: c.Settings.CommandFrom,
		})
	}
	return out
}

func packageExports(app appdef.App) []packageExport {
	out := []packageExport{}
	for _, g := range app.ExportGroups {
		for _, e := range g.Exports {
			out = append(out, packageExport{Group: g.Name, Name: e.Name, Value: e.Value})
		}
	}
	return out
}

// packageFiles lists the files in the order of their paths.
func packageFiles(tree fs.FS) ([]packageFile, error) {
	out := []packageFile{}
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f := packageFile{Path: path}
		switch {
		case d.Type()&fs.ModeSymlink != 0:
			f.Link, err = fs.ReadLink(tree, path)
		case d.Type().IsRegular():
			f.Bytes, f.SHA256, err = sum(tree, path)
		default:
			err = fmt.Errorf("%s: got a %s, want files, folders and links", path, files.KindOf(d.Type()))
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

// signatureBeside is what lies beside an archive, unchecked; nil where nothing does.
func signatureBeside(from openapp.Source) (*sign.Signature, error) {
	if from.Signature == "" || from.Package.Folder {
		return nil, nil // nobody can sign it
	}
	s, err := sign.Read(from.Signature)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // none is an answer
	}
	return &s, err
}

func (i inspection) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\n", printable(strings.Join(strings.Fields(i.Name+" "+i.Release), " ")))
	for _, row := range [][2]string{{"about", i.About}, {"schema", i.Schema}, {"framework", i.Framework}, {"sha256", i.SHA256}} {
		if row[1] != "" {
			fmt.Fprintf(w, "%s\t%s\n", row[0], printable(row[1]))
		}
	}
	if i.Signature != nil {
		fmt.Fprintf(w, "signature\tby key %s, not checked: %s\n", i.Signature.KeyID, printable(i.Signature.Comment))
	} else if i.SHA256 != "" {
		fmt.Fprintln(w, "signature\tnone")
	}
	fmt.Fprint(w, "\nCOMPONENT\tINSTANCES\tROLE\tMEMORY\tVCORES\tGPUS\tCOMMAND\n")
	for _, c := range i.Components {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\t%d\t%s\n", printable(c.Name), c.Instances, c.Role, asMuch(c.MemoryMB, " MB"), asMuch(c.VCores, ""), c.GPUs, c.Command)
	}
	if len(i.Exports) > 0 {
		fmt.Fprint(w, "\nEXPORT\tVALUE\n")
	}
	for _, e := range i.Exports {
		fmt.Fprintf(w, "%s\t%s\n", printable(e.Group+"."+e.Name), printable(e.Value))
	}
	fmt.Fprint(w, "\nFILE\tBYTES\tSHA256\n")
	for _, f := range i.Files {
		if f.Link != "" {
			fmt.Fprintf(w, "%s\t\t-> %s\n", printable(f.Path), printable(f.Link))
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%s\n", printable(f.Path), f.Bytes, f.SHA256)
	}
	return w.Flush()
}

// asMuch prints a limit that may be as much as there is.
func asMuch(n int, unit string) string {
	if n == appdef.Max {
		return "max"
	}
	return strconv.Itoa(n) + unit
}

// printable is a stranger's text on one line of a terminal that it cannot steer.
func printable(text string) string {
	text = strings.ReplaceAll(text, "\t", " ") // as minisign separates the words of its comment
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	return strconv.Quote(text)
}

func unprintable(r rune) bool { return !unicode.IsPrint(r) }
