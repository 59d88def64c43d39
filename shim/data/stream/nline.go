package stream

import (
	"context"
	"errors"
	"io"
)

// The number of such splits is not known before the lines are read, so each reader counts them: in one pass if they are
// assigned in turn; with blocks, their number must be known first.

// feedTurns feeds the reader's groups of lines; a group never spans two files.
func (s *Share) feedTurns(ctx context.Context, out *sink) error {
	turn := s.reading.Turn
	if !turn.Shuffle && s.groups < 0 {
		all, err := s.walk(ctx, out, func(int) (bool, bool) { return false, false })
		if err != nil {
			return err
		}
		s.groups = all
	}
	last := -1
	mine := func(group int) (own, over bool) {
		own = turn.Has(group, s.groups)
		if own && group != last {
			last = group
			out.count.Splits++
		}
		_, to := turn.block(max(s.groups, 0))
		return own, !turn.Shuffle && group >= to
	}
	if _, err := s.walk(ctx, out, mine); err != nil {
		return err
	}
	return out.flush()
}

// walk reads all lines of all files and counts their groups. It asks for each line whose group it is, and whether to
// stop.
func (s *Share) walk(ctx context.Context, out *sink, mine func(group int) (own, over bool)) (groups int, err error) {
	for _, split := range s.Splits {
		over, err := s.walkFile(ctx, split, out, &groups, mine)
		if err != nil || over {
			return groups, err
		}
	}
	return groups, nil
}

func (s *Share) walkFile(
	ctx context.Context, split Split, out *sink, groups *int, mine func(int) (bool, bool),
) (over bool, err error) {
	from, done, err := s.open(ctx, split)
	if err != nil {
		return false, out.cause(ctx, split.File, err)
	}
	defer func() { err = errors.Join(err, done()) }()
	each, within := max(s.reading.Lines, 1), 0
	for {
		own, over := mine(*groups)
		if over {
			return true, nil
		}
		if own {
			err = out.record(from)
		} else {
			err = from.next(io.Discard)
		}
		if errors.Is(err, io.EOF) && out.err == nil {
			if within > 0 {
				*groups++
			}
			return false, nil
		}
		if err != nil {
			return false, out.cause(ctx, split.File, err)
		}
		if within++; within == each {
			*groups++
			within = 0
		}
	}
}
