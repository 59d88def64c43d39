// Command transfer copies a folder from a store or to one, by the same code as an agent's inputs and outputs: it is
// muster's contender in `make bench-hdfs`, beside other commands that do only this.
//
//	transfer get URL FOLDER
//	transfer put FOLDER URL
package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/hdfs"
	"github.com/muster-agent/muster/shim/store/schemes"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "transfer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) != 3 {
		return errors.New("usage: transfer get URL FOLDER, transfer put FOLDER URL")
	}
	switch args[0] {
	case "get":
		return get(ctx, args[1], args[2])
	case "put":
		return put(ctx, args[1], args[2])
	}
	return fmt.Errorf("%s: want get or put", args[0])
}

// get brings all files below a URL, as an input's are brought.
func get(ctx context.Context, url, folder string) (err error) {
	in, top, err := schemes.All(hdfs.Config{}).Open(ctx, url)
	if err != nil {
		return err
	}
	files, err := transfer.Listing{Store: in}.List(ctx, top)
	if err != nil {
		return err
	}
	to, err := makeRoot(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	var copies []transfer.Copy
	for _, f := range files {
		copies = append(copies, transfer.Copy{From: f, To: strings.TrimPrefix(strings.TrimPrefix(f.Path, top), "/")})
	}
	return transfer.Transfer{}.Bring(ctx, to, copies)
}

func makeRoot(folder string) (*os.Root, error) {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // as a job's folders are
		return nil, err
	}
	return os.OpenRoot(folder)
}

// put sends all files of a folder and gives the whole its name at the end, as an output is left.
func put(ctx context.Context, folder, url string) (err error) {
	in, top, err := schemes.All(hdfs.Config{}).Open(ctx, url)
	if err != nil {
		return err
	}
	from, err := os.OpenRoot(folder)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	half := path.Join(path.Dir(top), "_temporary", path.Base(top))
	var uploads []store.Upload
	err = fs.WalkDir(from.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return in.MkdirAll(ctx, path.Join(half, name))
		}
		uploads = append(uploads, store.Upload{From: from, Name: filepath.FromSlash(name), To: path.Join(half, name)})
		return nil
	})
	if err != nil {
		return err
	}
	if err := (transfer.Transfer{}).Send(ctx, in, uploads); err != nil {
		return err
	}
	return in.Rename(ctx, half, top)
}
