package manager

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/muster-agent/muster/packages"
	"github.com/muster-agent/muster/packages/cachedir"
	"github.com/muster-agent/muster/shim/data/transfer"
	"github.com/muster-agent/muster/shim/fault"
	"github.com/muster-agent/muster/shim/files"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/plan"
	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/store/cache"
	"github.com/muster-agent/muster/shim/store/file"
	"github.com/muster-agent/muster/shim/store/hdfs"
)

// bringFiles brings the instance its own copies of files, folders and archives. It checks that all of them exist before
// it brings the first.
func (m *Manager) bringFiles(
	ctx context.Context, p plan.Plan, work files.Folder, folder files.UserFolder,
) error {
	items := slices.DeleteFunc(slices.Clone(p.Stage), func(item plan.StageItem) bool {
		return !slices.Contains([]string{plan.StageCopy, plan.StageUnpacked, plan.StageResource}, item.Kind)
	})
	if len(items) == 0 {
		return nil
	}
	for _, item := range items {
		if item.Unchecked {
			continue
		}
		if _, err := m.lookFor(ctx, p, item); err != nil {
			return fileFault(item, err)
		}
	}
	begun := time.Now()
	for _, item := range items {
		if err := m.bringFile(ctx, p, item, work, folder); err != nil {
			return fileFault(item, err)
		}
	}
	if _, err := cache.Clean(ctx, m.filesCache(p), cache.Keep{Since: begun.Add(-openapp.KeepFetched)}); err != nil {
		m.cfg.Log.Warn("cache of files not cleared", "err", err)
	}
	m.cfg.Log.Info("files brought", "files", len(items), "took", time.Since(begun).Round(time.Millisecond))
	return nil
}

// fileFault names the key of an item in its error.
func fileFault(item plan.StageItem, err error) error {
	key := "muster.file." + item.Name
	switch item.Kind {
	case plan.StageUnpacked:
		key = "muster.archive." + item.Name
	case plan.StageResource:
		key = "application.resources: " + item.Name
	}
	return fmt.Errorf("%s: %w", key, err)
}

// remote is an item in its store.
type remote struct {
	transfer.File

	store store.Store
	dir   bool
	local bool // on this host
}

// lookFor finds an item in its store.
func (m *Manager) lookFor(ctx context.Context, p plan.Plan, item plan.StageItem) (remote, error) {
	opened, path, err := m.cfg.Stores.Open(ctx, p, item.From, false)
	if err != nil {
		return remote{}, err
	}
	info, err := opened.Stat(ctx, path)
	if err != nil {
		return remote{}, err
	}
	if info.Dir && item.Kind == plan.StageUnpacked {
		return remote{}, fault.Definition(fmt.Errorf("%s is a folder, want an archive; muster.file.%s brings a "+
			"folder as it is", store.Printable(item.From), item.Name))
	}
	if info.Dir && item.Kind == plan.StageResource {
		return remote{}, fault.Definition(fmt.Errorf("%s is a folder, want a file; muster.file.NAME brings a folder",
			store.Printable(item.From)))
	}
	return remote{
		transfer.File{Store: opened, Path: path, Size: info.Size},
		opened, info.Dir,
		files.LocalPath(item.From) != "",
	}, nil
}

// bringFile replaces the file or folder of an item's name by the complete item.
func (m *Manager) bringFile(
	ctx context.Context, p plan.Plan, item plan.StageItem, work files.Folder, folder files.UserFolder,
) error {
	from, err := m.lookFor(ctx, p, item)
	if err != nil {
		return err
	}
	name, err := folder.Rel(item.To)
	if err != nil {
		return err
	}
	return work.Replace(folder, name, func(tmp *os.Root, dir string) error {
		if from.dir {
			return m.copyTree(ctx, from, tmp)
		}
		copied, done, err := m.copySource(ctx, p, item, from, tmp, dir)
		if err != nil {
			return err
		}
		if item.Kind == plan.StageUnpacked {
			err = unpack(ctx, item, copied, filepath.Join(dir, files.Filled))
		} else {
			err = m.ownCopy(ctx, item, copied, from, tmp)
		}
		return errors.Join(err, done())
	})
}

// copyTree copies a folder.
func (m *Manager) copyTree(ctx context.Context, from remote, tmp *os.Root) error {
	listing := transfer.Listing{Store: from.store}
	if from.local {
		listing.Without = m.ofTheRun(from.Path)
	}
	found, err := listing.Tree(ctx, store.Info{Path: from.Path, Dir: true})
	if err != nil {
		return err
	}
	return m.fill(ctx, tmp, transfer.Below(from.Path, found))
}

// fill brings files into files.Filled.
func (m *Manager) fill(ctx context.Context, tmp *os.Root, copies []transfer.Copy) error {
	if err := tmp.Mkdir(files.Filled, 0o755); err != nil {
		return err
	}
	whole, err := tmp.OpenRoot(files.Filled)
	if err != nil {
		return err
	}
	err = m.Transfer().Bring(ctx, whole, copies)
	return errors.Join(err, whole.Close())
}

// copySource gives a file of this host with the content of an item. A local item is copied into the folder tmp (at
// dir), so that it is read with the process's rights; any other comes from the cache. done releases it.
func (m *Manager) copySource(
	ctx context.Context, p plan.Plan, item plan.StageItem, from remote, tmp *os.Root, dir string,
) (path string, done func() error, err error) {
	if from.local {
		const name = "source"
		err := m.Transfer().Bring(ctx, tmp, []transfer.Copy{{From: from.File, To: name}})
		if err == nil && item.Digest != "" {
			err = checkDigest(tmp, name, item.Digest)
		}
		return filepath.Join(dir, name), func() error { return nil }, err
	}
	again := func(context.Context, string) (store.Store, string, error) { return from.store, from.Path, nil }
	scheme := strings.TrimSuffix(store.SchemeOf(item.From), ":")
	// HDFS checks the right to read, the cache only that the file is the same.
	if scheme == hdfs.Scheme {
		if err := mayRead(ctx, from.File); err != nil {
			return "", nil, err
		}
	}
	got, err := cache.Fetch(ctx, cache.Request{
		URL: item.From, SHA256: item.Digest, CacheDir: m.filesCache(p),
		Progress: &logLines{log: m.cfg.Log, name: item.Name}, Stores: store.Set{scheme: again},
	})
	if err != nil {
		return "", nil, err
	}
	m.cfg.Log.Info("file cached", "file", item.Name, "bytes", got.Size, "cached", got.Cached)
	return got.Path, got.Close, nil
}

// checkDigest compares a copy with the SHA-256 that it must have.
func checkDigest(in *os.Root, name, want string) error {
	f, err := in.Open(name)
	if err != nil {
		return err
	}
	h := sha256.New()
	_, err = io.Copy(h, f)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(h.Sum(nil)); got != want {
		return fault.Definition(&store.DigestError{Want: want, Got: got})
	}
	return nil
}

// mayRead reads a file's first byte: HDFS checks the right at the first read, not when the file is opened.
func mayRead(ctx context.Context, f transfer.File) error {
	content, err := f.Store.Open(ctx, f.Path, store.Position{})
	if err != nil {
		return err
	}
	if _, err = content.Read(make([]byte, 1)); errors.Is(err, io.EOF) { // of an empty one
		err = nil
	}
	return errors.Join(err, content.Close())
}

// filesCache keeps files of stores for other instances and other runs on this host, by user: the rights of one user do
// not open files for another. Stores do not know an app's own ids of this host, which would be a cache for each app.
func (m *Manager) filesCache(p plan.Plan) string {
	uid := os.Geteuid()
	if u := m.cfg.Stores.User(); u != nil {
		uid = u.UID
	}
	return filepath.Join(cachedir.Default(), "files", strconv.Itoa(uid)+"-"+url.PathEscape(m.cfg.Stores.HadoopUser(p)))
}

// ownCopy makes the instance's copy, which it may change. A store has no mode bits for programs: a file from a store
// may be run, as YARN has it.
func (m *Manager) ownCopy(ctx context.Context, item plan.StageItem, path string, from remote, tmp *os.Root) error {
	if from.local {
		return tmp.Rename(filepath.Base(path), files.Filled)
	}
	opened, path, err := file.Open(ctx, path)
	if err != nil {
		return err
	}
	info, err := opened.Stat(ctx, path)
	if err != nil {
		return err
	}
	copies := []transfer.Copy{{From: transfer.File{Store: opened, Path: path, Size: info.Size}, To: files.Filled}}
	if err := m.Transfer().Bring(ctx, tmp, copies); err != nil {
		return fmt.Errorf("%s: copy for the instance: %w", store.Printable(item.From), err)
	}
	return tmp.Chmod(files.Filled, 0o755)
}

// unpack unpacks an archive into a folder. A bad archive is a fault of the definition.
func unpack(ctx context.Context, item plan.StageItem, path, to string) error {
	name, _, _ := strings.Cut(store.Printable(item.From), "?")
	_, err := packages.Extract(ctx, path, to, packages.ExtractOptions{Name: name})
	if errors.Is(err, packages.ErrRefused) {
		return fault.Definition(err)
	}
	return err
}

// logLines writes the lines of a progress display to a log.
type logLines struct {
	log  *slog.Logger
	name string
	rest []byte
}

func (l *logLines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		line, rest, ok := bytes.Cut(l.rest, []byte("\n"))
		if !ok {
			return len(b), nil
		}
		l.rest = rest
		l.log.Info("fetching", "file", l.name, "progress", strings.TrimSpace(string(line)))
	}
}
