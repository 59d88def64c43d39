package ship

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/store"
)

// Push puts a package, and its signature if it has one, to a URL. The same file there is left as it is; another one is
// refused without force. It returns the sha256 and the URL in full.
func Push(ctx context.Context, file, ref string, force bool, stores store.Set) (digest, url string, err error) {
	if url, err = target(file, ref); err != nil {
		return "", "", err
	}
	if digest, err = digestOfPackage(file); err != nil {
		return "", "", err
	}
	there, err := digestThere(ctx, url, stores)
	if err != nil {
		return "", "", exit.With(openapp.FetchCode(err), err)
	}
	if there != "" && there != digest && !force {
		return "", "", exit.With(exit.Definition, fmt.Errorf(
			"package push: %s: another file is there: sha256 %s, this is %s; --force replaces it", store.Printable(url),
			there, digest,
		))
	}
	if err := put(ctx, file, url, digest, there, stores); err != nil {
		return "", "", exit.Default(openapp.FetchCode(err), err)
	}
	return digest, url, nil
}

// target is the URL that a package goes to: one that ends in / is a folder.
func target(file, ref string) (string, error) {
	at, err := openapp.ParseLocation(ref)
	switch {
	case err != nil:
		return "", err
	case at.ReadOnly():
		return "", exit.Usagef(
			"package push: %s is for reading alone; put it into the folder that the server shows, by file:, or by "+
				"the server's own tool",
			store.Printable(at.URL),
		)
	case at.Digest != "":
		return "", exit.Usagef("package push: %s… says what is fetched, not what is pushed", openapp.Pin)
	case strings.HasSuffix(at.URL, "/"):
		return at.URL + filepath.Base(file), nil
	}
	return at.URL, nil
}

// digestOfPackage is the sha256 of an archive that an agent would take.
func digestOfPackage(file string) (string, error) {
	pkg, err := packages.Open(file)
	if err != nil {
		return "", exit.With(exit.Definition, err)
	}
	if pkg.Folder {
		err = fmt.Errorf("package push %s: got a folder, want an archive: muster package build makes one", file)
	}
	return pkg.Digest, exit.With(exit.Definition, errors.Join(err, pkg.Close()))
}

// digestThere is the sha256 of the file at a URL; empty: there is none.
func digestThere(ctx context.Context, url string, stores store.Set) (digest string, err error) {
	opened, path, err := stores.Open(ctx, url)
	if err != nil {
		return "", err
	}
	content, err := opened.Open(ctx, path, store.Position{})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, content.Close()) }()
	return digestOf(content)
}

// put puts the signature last: a reader that sees it sees its file too. The signature of an earlier file goes first.
func put(ctx context.Context, file, url, digest, there string, stores store.Set) error {
	beside := file + sign.Ending
	_, err := os.Stat(beside)
	signed := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if there != digest {
		if err := removeThere(ctx, url+sign.Ending, stores); err != nil {
			return err
		}
		if _, err := store.Put(ctx, url, file, digest, stores); err != nil {
			return err
		}
	}
	if signed {
		_, err = store.Put(ctx, url+sign.Ending, beside, "", stores)
		return err
	}
	return nil
}

func removeThere(ctx context.Context, url string, stores store.Set) error {
	opened, path, err := stores.Open(ctx, url)
	if err != nil {
		return err
	}
	is, err := opened.Stat(ctx, path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err == nil && is.Dir:
		return exit.With(exit.Definition, fmt.Errorf(
			"package push: %s is a folder, want a signature or nothing; remove it", store.Printable(url),
		))
	case err != nil:
		return err
	}
	return opened.Remove(ctx, path)
}
