package submit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"

	"golang.org/x/sys/unix"

	"github.com/muster-agent/muster/shim/exit"
	"github.com/muster-agent/muster/shim/openapp"
	"github.com/muster-agent/muster/shim/store"
)

// checkAccess refuses a store that others may write, from the run's folder up to the root: what they put there would
// run as every agent of the job, with the rights of who submits it.
func (f *runFolder) checkAccess(ctx context.Context) error {
	for at := f.at(""); ; at = path.Dir(at) {
		access, err := f.store.access(ctx, at)
		switch {
		case errors.Is(err, fs.ErrNotExist), errors.Is(err, errors.ErrUnsupported):
		case err != nil:
			err = fmt.Errorf("submit: store %s: look who may write %s: %w", f.store, at, err)
			return exit.Default(openapp.FetchCode(err), err)
		case access.OthersWrite():
			return exit.With(exit.Forbidden, fmt.Errorf("submit: store %s: others may write %s (mode %04o, owner %s), "+
				"and would run as the agents; chmod go-w or chmod +t %s, or name another --store", f.store, at,
				access.Mode, access.Owner, at))
		case f.store.local && access.Owner != rootOwner && access.Owner != ownOwner():
			return exit.With(exit.Forbidden, fmt.Errorf("submit: store %s: %s belongs to %s, who could replace what "+
				"is submitted; want a folder of root or of the user who submits, or another --store", f.store, at,
				access.Owner))
		}
		if at == path.Dir(at) {
			return nil
		}
	}
}

const rootOwner = "uid 0"

func ownOwner() string { return fmt.Sprintf("uid %d", os.Geteuid()) }

// access tells who may write to a folder; errors.ErrUnsupported: the store does not know.
func (s *runStore) access(ctx context.Context, at string) (store.Access, error) {
	if guarded, ok := s.in.(store.Guarded); ok {
		return guarded.Access(ctx, at)
	}
	if !s.local {
		return store.Access{}, errors.ErrUnsupported
	}
	var st unix.Stat_t
	if err := unix.Stat(at, &st); err != nil {
		if errors.Is(err, unix.ENOTDIR) {
			err = fs.ErrNotExist // told by who makes the folder
		}
		return store.Access{}, &fs.PathError{Op: "stat", Path: at, Err: err}
	}
	return store.Access{Owner: fmt.Sprintf("uid %d", st.Uid), Mode: st.Mode & 0o1777}, nil
}
