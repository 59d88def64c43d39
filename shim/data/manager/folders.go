package manager

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strconv"
	"time"

	"github.com/muster-agent/muster/shim/files"
)

// foldersRoute is where a package's scripts ask for folders in stores that they do not reach themselves
// (HdfsDirectory). It lies below the container's own URL, which cannot be guessed.
const foldersRoute = "/muster/folders"

// wantedFolder is a folder to make in a store.
type wantedFolder struct {
	URL   string `json:"url"`
	Mode  string `json:"mode,omitempty"`  // octal; empty: the store's own
	Below bool   `json:"below,omitempty"` // the mode is for its content, too
}

// folderTime is how long making a folder may take: less than the server allows for an answer.
const folderTime = 25 * time.Second

// WithFolders answers foldersRoute, and passes the rest to Slider's REST.
func (m *Manager) WithFolders(prefix string, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if prefix == "" || r.URL.Path != prefix+foldersRoute {
			rest.ServeHTTP(w, r)
			return
		}
		if r.Method != http.MethodPost {
			http.Error(w, "want POST", http.StatusMethodNotAllowed)
			return
		}
		const most = 64 << 10
		var want wantedFolder
		text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, most))
		if err == nil {
			err = json.Unmarshal(text, &want)
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		ctx, cancel := context.WithTimeoutCause(r.Context(), folderTime, fmt.Errorf("not done after %s", folderTime))
		defer cancel()
		if err := m.makeFolder(ctx, want); err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		m.cfg.Log.Info("folder made", "url", want.URL, "mode", want.Mode)
		w.WriteHeader(http.StatusNoContent)
	})
}

// moder is a store whose files have modes.
type moder interface {
	Chmod(ctx context.Context, path string, mode fs.FileMode, below bool) error
}

// makeFolder makes a folder as the process's user.
func (m *Manager) makeFolder(ctx context.Context, want wantedFolder) error {
	if files.LocalPath(want.URL) != "" {
		return errors.New("it is on this host: the script makes it itself")
	}
	store, path, err := m.cfg.Stores.Open(ctx, m.cfg.Process.Plan(), want.URL, true)
	if err != nil {
		return err
	}
	if err := store.MkdirAll(ctx, path); err != nil || want.Mode == "" {
		return err
	}
	mode, err := strconv.ParseUint(want.Mode, 8, 12)
	if err != nil {
		return fmt.Errorf("mode: got %q, want octal digits", want.Mode)
	}
	modes, ok := store.(moder)
	if !ok {
		return fmt.Errorf("mode of %s: %w", want.URL, errors.ErrUnsupported)
	}
	return modes.Chmod(ctx, path, fs.FileMode(mode), want.Below)
}
