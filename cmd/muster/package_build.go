package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
)

type packageBuildFlags struct {
	out     string
	noCheck bool
	verbose bool
	json    bool
}

// built is the answer of muster package build --json.
type built struct {
	Version int      `json:"version"`
	File    string   `json:"file"`
	SHA256  string   `json:"sha256"`
	Bytes   int64    `json:"bytes"`
	Files   []string `json:"files"`
	LeftOut []string `json:"left_out"`
}

func newPackageBuild(s streams) *cobra.Command {
	f := packageBuildFlags{}
	cmd := &cobra.Command{
		Use: "build DIR -o FILE", Short: "Pack a folder: the same bytes from the same files", Args: exactly("DIR"),
		Long: `Packs the folder DIR as FILE: .zip, .tar.gz, .tgz or .tar.zst. The same files give the same bytes, whenever, wherever
and by whom they are packed with one version of muster: entries are sorted, nobody's, of mode 0644 or 0755, and of
one time, that of SOURCE_DATE_EPOCH (seconds since 1970) or the format's earliest. FILE is written whole or not at all.

Left out are folders of version control, __pycache__, *.pyc, backups of editors, and FILE with its signature. Refused
(65) is what no agent would take: links that leave the folder, devices, a definition with errors.

A FILE.minisig of a former FILE that differs is removed.

The sha256 is printed as sha256sum(1) prints it.`,
		Example: "  muster package build myapp -o myapp-1.0.0.zip\n  muster package build myapp -o myapp.tar.zst --verbose | sha256sum -c",
		RunE:    func(cmd *cobra.Command, args []string) error { return f.build(cmd.Context(), s, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "output", "o", "", "`FILE` to write")
	flags.BoolVar(&f.noCheck, "no-check", false, "pack a definition that has errors")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "name on stderr what is packed and what is left out")
	flags.BoolVar(&f.json, "json", false, "print {file, sha256, bytes, files, left_out} as JSON")
	return cmd
}

func (f *packageBuildFlags) build(ctx context.Context, s streams, dir string) error {
	if f.out == "" {
		return exit.Usagef("package build: -o FILE is missing")
	}
	at, err := sourceDate(os.Getenv("SOURCE_DATE_EPOCH"))
	if err != nil {
		return err
	}
	if info, err := os.Stat(dir); err != nil {
		return exit.With(exit.Definition, fmt.Errorf("package build: %w", err))
	} else if !info.IsDir() {
		return exit.With(exit.Definition, fmt.Errorf("package build %s: got a file, want the folder of a package", dir))
	}
	if !f.noCheck {
		if err := checkDefinition(ctx, s, dir); err != nil {
			return err
		}
	}
	before := signedDigest(f.out)
	packed, err := packages.Pack(dir, f.out, packages.PackOptions{Time: at})
	if err != nil {
		return exit.With(exit.Definition, err)
	}
	if before != "" && before != packed.Digest {
		if err := dropSignature(s, f.out); err != nil {
			return err
		}
	}
	f.tell(s, packed)
	if f.json {
		return printJSON(s.out, built{
			Version: 1, File: f.out, SHA256: packed.Digest, Bytes: packed.Bytes, Files: asList(packed.Files), LeftOut: asList(packed.LeftOut),
		})
	}
	fmt.Fprintf(s.out, "%s  %s\n", packed.Digest, f.out)
	return nil
}

// signedDigest is the sha256 of a file that has a signature beside it; empty: there is none.
func signedDigest(path string) string {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() || noFile(path+sign.Ending) {
		return ""
	}
	file, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// dropSignature takes away the signature of a file that was replaced: it would belie the new one.
func dropSignature(s streams, file string) error {
	stale := file + sign.Ending
	if err := removeStale(stale); err != nil {
		return fmt.Errorf("package build: remove the signature of the former %s: %w", file, err)
	}
	fmt.Fprintf(s.err, "removed %s: it was of the former file; muster package sign signs the new one\n", stale)
	return nil
}

// checkDefinition is what muster validate says of the folder.
func checkDefinition(ctx context.Context, s streams, dir string) error {
	var as openapp.Choices
	l, found, err := as.Read(ctx, dir)
	if err != nil {
		return err
	}
	defer l.Close()
	if len(found.Errors()) == 0 {
		found = append(found, firstPlans(l)...).Sort()
	}
	openapp.PrintWarnings(s.err, found)
	return exit.OfProblems(found)
}

func (f *packageBuildFlags) tell(s streams, packed packages.Packed) {
	switch {
	case f.verbose:
		for _, name := range packed.Files {
			fmt.Fprintf(s.err, "packed %s\n", printable(name))
		}
		for _, name := range packed.LeftOut {
			fmt.Fprintf(s.err, "left out %s\n", printable(name))
		}
	case len(packed.LeftOut) > 0:
		fmt.Fprintf(s.err, "left out: %s\n", printable(firstFew(packed.LeftOut)))
	}
}

// firstFew names some and counts the rest.
func firstFew(names []string) string {
	const few = 5
	if len(names) <= few {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more (--verbose names them)", strings.Join(names[:few], ", "), len(names)-few)
}

// latestZip is the last second that a zip can say: 2107-12-31.
const latestZip = 4354819199

// sourceDate reads SOURCE_DATE_EPOCH, by which builders of packages agree on a time (reproducible-builds.org).
func sourceDate(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > latestZip {
		return time.Time{}, exit.Usagef("SOURCE_DATE_EPOCH %q: want seconds since 1970, up to %d", text, latestZip)
	}
	return time.Unix(n, 0), nil
}

// asList is a list that JSON prints as one where it is empty.
func asList(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

func noFile(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
