package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/muster-agent/muster/shim/data/transfer"
)

// Publish gives a complete copy its name, after a verdict under which its outputs count, and removes an incomplete one.
// published tells that there was a complete one. It may be repeated, and several agents may call it at once.
func (l Leave) Publish(ctx context.Context) (published bool, err error) {
	_, err = l.Store.Stat(ctx, l.whole())
	if err == nil {
		published, err = l.name(ctx)
	}
	if err = absent(err); err == nil {
		err = l.GiveUp(ctx)
	}
	if err != nil {
		return published, fmt.Errorf("output %s: %w", l.final(), err)
	}
	return published, nil
}

// name gives the complete copy its name. Another agent may have done the same just before.
func (l Leave) name(ctx context.Context) (bool, error) {
	_, err := l.Store.Stat(ctx, l.final())
	if err == nil {
		if _, err := l.Store.Stat(ctx, l.whole()); err != nil {
			return true, err
		}
		return false, &TakenError{l.Out, l.final()} // it belongs to a stranger: both stay
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, l.Store.Rename(ctx, l.whole(), l.final())
}

// GiveUp removes the instance's folder with its content.
func (l Leave) GiveUp(ctx context.Context) error {
	if err := l.discard(ctx); err != nil {
		return err
	}
	return absent(l.Store.Remove(ctx, l.place()))
}

// Owed tells that the outputs could not be copied after the verdict.
func (l Leave) Owed(ctx context.Context) (bool, error) {
	_, err := l.Store.Stat(ctx, path.Join(l.place(), owedName))
	return err == nil, absent(err)
}

// Open are the folders of the run's instances in Out whose outputs are not settled yet.
func (l Leave) Open(ctx context.Context) ([]string, error) {
	names, err := l.names(ctx, l.run())
	if err != nil {
		return nil, fmt.Errorf("output %s: %w", l.Out, err)
	}
	return names, nil
}

// Conclude ends the run's part in Out once no outputs are open: after a success with _SUCCESS, which is made before the
// run's folder goes, so that one of the two is found after a crash. done tells that the part has ended.
func (l Leave) Conclude(ctx context.Context, succeeded bool) (done bool, err error) {
	if _, err := l.Store.Stat(ctx, l.run()); errors.Is(err, fs.ErrNotExist) {
		// Another agent has concluded, and the outputs may have been moved since.
		return false, absent(l.Store.Prune(ctx, path.Join(l.Out, transfer.Temporary)))
	}
	open, err := l.Open(ctx)
	if err != nil || len(open) > 0 {
		return false, err
	}
	if succeeded {
		err = l.touch(ctx, path.Join(l.Out, transfer.Success))
	}
	if err == nil {
		err = errors.Join(l.Store.Prune(ctx, l.run()), l.Store.Prune(ctx, path.Join(l.Out, transfer.Temporary)))
	}
	if err != nil {
		return false, fmt.Errorf("output %s: %w", l.Out, err)
	}
	return true, nil
}
