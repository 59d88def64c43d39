package stage

import (
	"context"
	"errors"
	"fmt"

	"github.com/muster-agent/muster/packages/fetch"
)

// web is a web server: files are read there, by their URLs. It lists nothing, and nothing is written.
type web struct{ fetch.Store }

func openWeb(ctx context.Context, url string) (Store, string, error) {
	store, path, err := fetch.Open(ctx, url, fetch.Options{})
	if err != nil {
		return nil, "", err
	}
	return web{store}, path, nil
}

// URL is a path of this server as it is written elsewhere; what may be secret is in it.
func (w web) URL(path string) string {
	if there, ok := w.Store.(fetch.Located); ok {
		return there.URL(path)
	}
	return path
}

func (web) MkdirAll(_ context.Context, path string) error { return readOnly("make folder", path) }

func (web) Prune(_ context.Context, path string) error { return readOnly("remove", path) }

func readOnly(act, path string) error {
	return fmt.Errorf("%s %s: %w: a web server is for reading", act, fetch.Printable(path), errors.ErrUnsupported)
}
