package cache

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/muster-agent/muster/shim/store"
	"github.com/muster-agent/muster/shim/wait"
)

// stall is the time without a byte after which a try is cancelled.
const stall = time.Minute

var errStalled = fmt.Errorf("%w: nothing came for %s", store.ErrUnreachable, stall)

// download brings the content of a URL into a file of the cache's folder partial.
type download struct {
	cache   cache
	store   store.Store
	path    string
	url     string
	want    string // digest; empty: any
	max     int64  // bytes
	retries int
	tally   *tally
}

// note is the version of the bytes of a partial file. It is written before them.
type note struct {
	URL       string `json:"url"` // printable
	Validator string `json:"validator"`
	Size      int64  `json:"size"` // of the complete file; -1: not known
	Boot      string `json:"boot"` // of the host: a file may have lost bytes in a crash
}

func (d *download) partial() string { return filepath.Join(d.cache.root, "partial", key(d.url)) }

// whole completes the partial file, and returns its digest as read from disk. The caller holds the URL's lock.
func (d *download) whole(ctx context.Context) (_ *os.File, digest string, n note, err error) {
	f, err := os.OpenFile(d.partial(), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, "", n, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.Close())
		}
	}()
	resumed, err := d.resume(f, &n)
	if err != nil {
		return nil, "", n, err
	}
	for {
		if err := d.fill(ctx, f, &n); err != nil {
			return nil, "", n, err
		}
		if digest, _, err = sum(ctx, f); err != nil {
			return nil, "", n, err
		}
		if d.want == "" || digest == d.want {
			return f, digest, n, nil
		}
		if !resumed {
			return nil, "", n, errors.Join(&store.DigestError{Want: d.want, Got: digest}, d.drop())
		}
		resumed = false // the bytes of an earlier try may be wrong: once more from the start
		if err := d.empty(f); err != nil {
			return nil, "", n, err
		}
	}
}

// resume tells whether the bytes of an earlier process can be used; if not, the file is emptied.
func (d *download) resume(f *os.File, n *note) (bool, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil || size == 0 {
		return false, err
	}
	known := readJSON(d.partial()+".json", n) && n.URL == store.Printable(d.url)
	if known && (d.want != "" || n.Validator != "" && n.Boot == boot()) {
		d.tally.had(size)
		return true, nil
	}
	*n = note{}
	return false, f.Truncate(0)
}

// boot identifies this boot of the host; empty if the kernel does not tell, which equals no other.
func boot() string {
	text, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(text))
}

// drop removes the partial file.
func (d *download) drop() error {
	return errors.Join(os.Remove(d.partial()), removeIfThere(d.partial()+".json"))
}

// empty truncates a file whose bytes cannot be trusted.
func (d *download) empty(f *os.File) error {
	d.tally.restart()
	_, err := f.Seek(0, io.SeekStart)
	return errors.Join(err, f.Truncate(0))
}

// fill downloads until f is complete. A try that brought the file further than any before does not count against the
// number of tries; a try that brought the same bytes again does.
func (d *download) fill(ctx context.Context, f *os.File, n *note) error {
	best, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	for failed := 0; ; {
		done, err := d.more(ctx, f, n)
		if done {
			return nil
		}
		have, seekErr := f.Seek(0, io.SeekEnd)
		if seekErr != nil {
			return errors.Join(err, seekErr)
		}
		if have > best {
			best, failed = have, 0
			if err == nil { // a server that sends a part at a time
				continue
			}
		} else {
			failed++
		}
		if err == nil {
			err = fmt.Errorf("%w: nothing more than %d bytes come", store.ErrUnreachable, have)
		}
		if cause := context.Cause(ctx); cause != nil {
			return cause
		}
		if !store.Transient(err) || failed > d.retries {
			return err
		}
		pause := backoff(failed, err)
		d.tally.broke(err, pause)
		if err := wait.For(ctx, pause); err != nil {
			return err
		}
	}
}

// backoff is the time before the next try, and not less than the server asks for.
func backoff(failed int, err error) time.Duration {
	pause := store.DefaultBackoff.Time(failed)
	if status, ok := errors.AsType[*store.StatusError](err); ok {
		pause = max(pause, status.After)
	}
	return pause
}

// more asks the store for the missing bytes. Bytes that arrived before an error are kept.
func (d *download) more(ctx context.Context, f *os.File, n *note) (done bool, err error) {
	ctx, alive, stop := watch(ctx)
	defer stop()
	have, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return false, err
	}
	if have > 0 && have == n.Size {
		if done, err := d.complete(ctx, f, n); done || err != nil {
			return done, err
		}
		have = 0
	}
	from := store.Position{Offset: have, Validator: n.Validator}
	if n.Validator == "" && d.want == "" {
		from = store.Position{} // two versions in one file would go unnoticed
	}
	c, err := d.store.Open(ctx, d.path, from)
	if err != nil {
		return false, err
	}
	defer c.Close()
	if have, err = d.fit(f, c, n, have); err != nil {
		return false, err
	}
	// one byte beyond the limit shows that a file is too long
	end := d.max
	if c.Info.Size >= 0 {
		end = min(end, c.Info.Size)
	}
	got, err := io.Copy(io.MultiWriter(f, d.tally), io.LimitReader(beating{c, alive}, end-have+1))
	have += got
	switch {
	case err != nil:
		return false, err
	case have > d.max:
		return false, errors.Join(d.tooLarge(fmt.Sprintf("more than %d bytes came", d.max)), d.drop())
	case c.Info.Size >= 0 && have > c.Info.Size:
		return false, errors.Join(
			&store.Error{
				Err:  fmt.Errorf("it grew beyond %d bytes while it was read", c.Info.Size),
				Hint: "wait until it is written",
			},
			d.drop(),
		)
	case c.Info.Size >= 0 && have < c.Info.Size:
		return false, nil
	}
	return true, nil
}

// complete tells whether a file that has all its bytes is still the store's version: there are no bytes left to ask
// for. If it is not, it is emptied. With a digest the store is not asked.
func (d *download) complete(ctx context.Context, f *os.File, n *note) (bool, error) {
	if d.want != "" {
		return true, nil
	}
	now, err := d.store.Stat(ctx, d.path)
	if err != nil || now.Validator == n.Validator {
		return err == nil, err
	}
	*n = note{}
	return false, d.empty(f)
}

// fit adapts file and note to the content that was opened.
func (d *download) fit(f *os.File, c *store.Content, n *note, have int64) (int64, error) {
	if c.Info.Size > d.max {
		return 0, d.tooLarge(fmt.Sprintf("it has %d bytes", c.Info.Size))
	}
	if c.Offset != have && c.Offset != 0 {
		return 0, fmt.Errorf("%w: the store begins at byte %d, want %d", store.ErrProtocol, c.Offset, have)
	}
	if c.Offset == 0 && have > 0 || have > c.Info.Size && c.Info.Size >= 0 {
		if c.Offset != 0 {
			return 0, errors.Join(fmt.Errorf("%w: the file is shorter than it was", store.ErrUnreachable), d.empty(f))
		}
		if err := d.empty(f); err != nil {
			return 0, err
		}
		have = 0
	}
	d.tally.total(c.Info.Size)
	now := note{URL: store.Printable(d.url), Validator: c.Info.Validator, Size: c.Info.Size, Boot: boot()}
	if now == *n {
		return have, nil
	}
	*n = now
	return have, writeJSON(d.partial()+".json", now)
}

func (d *download) tooLarge(got string) error {
	return fmt.Errorf("%w: %s, want at most %d", store.ErrTooLarge, got, d.max)
}

// watch cancels a context when no byte has arrived for the time of a stall.
func watch(ctx context.Context) (_ context.Context, alive, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	beat, ended := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(ended)
		timer := time.NewTimer(stall)
		defer timer.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat:
				timer.Reset(stall)
			case <-timer.C:
				cancel(errStalled)
			}
		}
	}()
	alive = func() {
		select {
		case beat <- struct{}{}:
		default:
		}
	}
	return ctx, alive, func() { cancel(nil); <-ended }
}

// beating reports each read that brings bytes.
type beating struct {
	r     io.Reader
	alive func()
}

func (b beating) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if n > 0 {
		b.alive()
	}
	return n, err
}
