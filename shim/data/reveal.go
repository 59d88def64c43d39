package data

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/muster-agent/muster/shim/data/transfer"
)

// Reveal settles the instance's place after a verdict under which its outputs count: what is whole gets its name, what
// is not goes. revealed tells that there was something. It may be done again, and by several at once.
func (l Leave) Reveal(ctx context.Context) (revealed bool, err error) {
	_, err = l.Store.Stat(ctx, l.whole())
	if err == nil {
		revealed, err = l.name(ctx)
	}
	if err = absent(err); err == nil {
		err = l.GiveUp(ctx)
	}
	if err != nil {
		return revealed, fmt.Errorf("output %s: %w", l.final(), err)
	}
	return revealed, nil
}

// name gives what is whole its name. Another who does the same at this moment may have been faster.
func (l Leave) name(ctx context.Context) (bool, error) {
	_, err := l.Store.Stat(ctx, l.final())
	if err == nil {
		if _, err := l.Store.Stat(ctx, l.whole()); err != nil {
			return true, err
		}
		return false, &TakenError{l.Out, l.final()} // a stranger's: both stay
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	return true, l.Store.Rename(ctx, l.whole(), l.final())
}

// GiveUp takes the instance's place away with all that is in it.
func (l Leave) GiveUp(ctx context.Context) error {
	if err := l.discard(ctx); err != nil {
		return err
	}
	return absent(l.Store.Remove(ctx, l.place()))
}

// Owed tells whether what belongs into the place could not be copied.
func (l Leave) Owed(ctx context.Context) (bool, error) {
	_, err := l.Store.Stat(ctx, path.Join(l.place(), owedName))
	return err == nil, absent(err)
}

// Open are the folders of the run's instances whose outputs are not settled yet, of all instances that leave something
// at Out.
func (l Leave) Open(ctx context.Context) ([]string, error) {
	names, err := l.names(ctx, l.run())
	if err != nil {
		return nil, fmt.Errorf("output %s: %w", l.Out, err)
	}
	return names, nil
}

// Conclude ends the run's part in Out when nobody's outputs are open any more: after a success with _SUCCESS, which
// comes before the run's folder goes, so that who looks after a crash finds one or the other. done tells that it has.
func (l Leave) Conclude(ctx context.Context, succeeded bool) (done bool, err error) {
	if _, err := l.Store.Stat(ctx, l.run()); errors.Is(err, fs.ErrNotExist) {
		// Another has, and what was there may be elsewhere by now.
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
