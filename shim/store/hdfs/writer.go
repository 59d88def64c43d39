package hdfs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"
	"slices"
	"time"

	"github.com/muster-agent/muster/shim/store"
)

// writer writes a file on a connection of its own.
type writer struct {
	store *Store
	ctx   context.Context
	path  string

	link     *link
	stop     func() bool
	size     int64  // of a block, in bytes
	holder   []byte // the client's name that the file is held by
	file     uint64 // its number
	sum      *sums
	block    *block // that is written; nil: none
	last     []byte // the complete block before it, with its length; nil: none
	failed   error
	closed   bool
	unsure   bool // an answer to the creation was lost: it may have been made
	complete bool // it is closed for everybody
	hopeless bool // nothing can be added to it any more
}

// create makes the file, and the folders above it where they are missing.
func (w *writer) create() error {
	l, err := w.store.cluster.take(w.ctx, w.store.cluster.files)
	if err != nil {
		return err
	}
	err = w.store.guarded(w.ctx, l, func(l *link) error {
		block, copies, err := w.store.cluster.forms(l)
		if err != nil {
			return err
		}
		w.size, w.sum = block, newSums()
		return w.make(l, copies)
	})
	if err != nil {
		w.unsure = w.unsure || transient(err)
		w.store.cluster.give(l, w.store.cluster.files)
		return err
	}
	w.use(l)
	return nil
}

// make makes the file. One that a try of ours has left, whose answer was lost, is in the way of the next, which has
// another name to the NameNode.
func (w *writer) make(l *link, copies int) error {
	mode := 0o666 &^ w.store.cluster.conf.umask()
	one := func() error {
		_, err := l.CreateFile(w.path, copies, w.size, mode) // its writer of blocks is not used
		coded := false
		if w.holder, w.file, coded = l.wires.questions.made(); err == nil && coded { // only now it is known
			return errors.Join(notPlain("erasure coded"), l.Client.Remove(w.path))
		}
		return err
	}
	err := one()
	if errors.Is(err, fs.ErrNotExist) {
		if err = w.store.mkdirAll(l, path.Dir(w.path)); err == nil {
			err = one()
		}
	}
	if !w.unsure || !errors.Is(err, fs.ErrExist) {
		return err
	}
	info, lost := l.Client.Stat(w.path)
	if lost != nil || info.IsDir() || info.Size() > 0 {
		return errors.Join(err, lost)
	}
	if err := l.Client.Remove(w.path); err != nil {
		return err
	}
	return one()
}

// Write sends bytes to the DataNodes. After an error it writes nothing more until Resume.
func (w *writer) Write(p []byte) (n int, err error) {
	if w.failed != nil || w.closed {
		return 0, errors.Join(w.failed, closedError(w.closed))
	}
	for n < len(p) && err == nil {
		if w.block == nil {
			err = w.hopeful(w.store.patiently(w.ctx, "write", w.path, w.begin))
		}
		if err != nil {
			break
		}
		part := p[n:min(int64(len(p)), int64(n)+w.size-w.block.size)]
		if err = w.block.write(part); err == nil {
			n += len(part)
		}
		if err == nil && w.block.size == w.size {
			err = w.end()
		}
		if err != nil {
			err = w.broken(w.block.place, err)
		}
	}
	if err != nil {
		w.failed = w.store.explain("write", w.path, err)
		return n, w.failed
	}
	return n, nil
}

func closedError(closed bool) error {
	if closed {
		return os.ErrClosed
	}
	return nil
}

// mostSetUps is how many pipelines are tried for one block.
const mostSetUps = 5

// begin begins a block. Where a DataNode of it is not there, it is asked for elsewhere.
func (w *writer) begin() error {
	for tried := 1; ; tried++ {
		p, err := w.place()
		if err != nil {
			return err
		}
		w.block, err = openBlock(
			p, addressOf(p.nodes[0])[w.store.cluster.naming()], w.dial(len(p.nodes)), w.holder, w.sum.add,
		)
		if err == nil {
			return nil
		}
		if !transient(err) || tried == mostSetUps || w.ctx.Err() != nil {
			return errors.Join(w.broken(p, err), w.abandon(p))
		}
		w.leaveOut(p, err)
		if err := w.abandon(p); err != nil {
			return err
		}
	}
}

// leaveOut excludes the unreachable DataNodes, and the one that failed.
func (w *writer) leaveOut(p place, err error) {
	w.store.cluster.probe(w.ctx, p.nodes)
	c := w.store.cluster
	if setUp, ok := errors.AsType[*setUpError](err); ok && setUp.bad != "" {
		c.bad.refused(setUp.bad)
	}
	if ack, ok := errors.AsType[*ackError](err); ok && ack.at < len(p.nodes) {
		c.bad.refused(addressOf(p.nodes[ack.at])[c.naming()])
	}
}

// place asks for a block. Lost DataNodes are excluded, unless there are no others.
func (w *writer) place() (place, error) {
	bad := w.store.cluster.bad
	answer, err := w.ask("addBlock", w.addBlock(bad.nodes()))
	if errors.Is(err, errLeftOut) || errors.Is(err, errNoNodes) {
		if bad.forget() {
			answer, err = w.ask("addBlock", w.addBlock(nil))
		}
	}
	if err != nil {
		return place{}, err
	}
	p, err := placeOf(answer)
	if err == nil {
		for _, node := range p.nodes {
			bad.met(addressOf(node), node)
		}
	}
	return p, err
}

func (w *writer) addBlock(without [][]byte) []byte {
	message := slices.Concat(bytesField(1, []byte(w.path)), bytesField(2, w.holder))
	if w.last != nil {
		message = append(message, bytesField(3, w.last)...)
	}
	for _, node := range without {
		message = append(message, bytesField(4, node)...)
	}
	return append(message, numberField(5, w.file)...)
}

// abandon returns an incomplete block.
func (w *writer) abandon(p place) error {
	_, err := w.ask(
		"abandonBlock",
		slices.Concat(
			bytesField(1, p.id), bytesField(2, []byte(w.path)), bytesField(3, w.holder), numberField(4, w.file),
		),
	)
	return err
}

// end completes a block on all its DataNodes.
func (w *writer) end() error {
	if err := w.block.end(); err != nil {
		return err
	}
	w.sum.endBlock(w.block.size)
	w.last = w.block.place.sized(w.block.size)
	w.block = nil
	return nil
}

func (w *writer) ask(method string, message []byte) ([]byte, error) {
	w.link.wires.said()
	answer, err := w.link.ask(method, message)
	return answer, meaning(err, w.link.wires.said())
}

// dial connects with the first of so many DataNodes.
func (w *writer) dial(nodes int) func(address string) (net.Conn, error) {
	return func(address string) (net.Conn, error) {
		key, err := w.key()
		if err != nil {
			return nil, err
		}
		return w.link.wires.toData("tcp", address, blockTime(nodes), ackBuffer, key)
	}
}

// blockTime is how long the first of a block's DataNodes may say nothing.
func blockTime(nodes int) time.Duration { return dataTime + time.Duration(nodes)*nodeTime }

// key is the cluster's, where all data is encrypted by one; else nil.
func (w *writer) key() ([]field, error) {
	known, err := w.store.cluster.standards(w.link)
	if err != nil || !known.EncryptDataTransfer {
		return nil, err
	}
	answer, err := w.ask(keyQuestion, nil)
	return fields(data(fields(answer), 1)), err
}

// broken classifies the error of a pipeline. The pipeline is not repaired: the block, or the whole file, is written
// again.
func (w *writer) broken(p place, err error) error {
	if w.ctx.Err() != nil {
		return context.Cause(w.ctx)
	}
	if !transient(err) {
		return err
	}
	w.leaveOut(p, err)
	return anew{err}
}

// hopeful tells that only writing the whole file again helps: a block was accepted and has not appeared for the store's
// patience, since its DataNodes are lost; or a lease ended while the NameNode was unreachable, or this process was
// suspended.
func (w *writer) hopeful(err error) error {
	missing := errors.Is(err, errNotYet) && errors.Is(err, store.ErrWaited)
	if !missing && !errors.Is(err, errLease) {
		return err
	}
	w.hopeless = true
	return anew{
		&store.Error{
			// Not %w of err: it has been waited for, and may be tried again.
			Err:  fmt.Errorf("%w: it has to be written anew: %v", store.ErrUnreachable, err.Error()),
			Hint: "try again; hdfs dfsadmin -report shows which DataNodes are away",
		},
	}
}

// Resume prepares a file for more writing after an error, from the returned offset on: complete blocks are kept.
// Everything after that runs under this context.
func (w *writer) Resume(ctx context.Context) (at int64, err error) {
	if w.hopeless {
		return 0, w.store.explain(
			"write", w.path,
			&store.Error{Err: errors.New("nothing can be added to it any more"), Hint: "write it anew"},
		)
	}
	if w.complete {
		return 0, w.store.explain(
			"write", w.path,
			&store.Error{Err: errors.New("it is complete, and not what was written"), Hint: "write it anew"},
		)
	}
	w.ctx = ctx
	if err := w.store.patiently(ctx, "write", w.path, w.resume); err != nil {
		w.release() // a Close that has been would not do it; the block stays known for another Resume
		return 0, w.store.explain("write", w.path, err)
	}
	w.failed, w.closed = nil, false
	return w.sum.size, nil
}

func (w *writer) resume() error {
	if err := w.relink(); err != nil {
		return err
	}
	if _, err := w.ask(renewal, bytesField(1, w.holder)); err != nil { // it may have been long
		return err
	}
	if w.block != nil {
		w.block.giveUp()
		if err := w.abandon(w.block.place); err != nil {
			return err
		}
		w.block = nil
		w.sum.dropBlock()
	}
	go renew(w.link, w.holder)
	return nil
}

// renew renews the lease of a file whose holder's name is not that of the connection, as long as the connection lives.
func renew(l *link, holder []byte) {
	const often = 30 * time.Second // half the time after which another may take it
	ticker := time.NewTicker(often)
	defer ticker.Stop()
	for {
		select {
		case <-l.wires.ctx.Done():
			return
		case <-ticker.C:
			_, _ = l.ask(renewal, bytesField(1, holder)) // the next time, else
		}
	}
}

// anew is an error after which bytes must be written again.
type anew struct{ error }

func (a anew) Unwrap() error { return a.error }

// Close completes the file, and compares its checksums in HDFS with the written bytes. After an error the file may be
// wrong.
func (w *writer) Close() error {
	if w.closed {
		return os.ErrClosed
	}
	w.closed = true
	defer w.release()
	if w.failed != nil {
		return w.store.explain("close", w.path, &store.Error{Err: errors.New("it was not written whole")})
	}
	if w.block != nil {
		p := w.block.place
		if err := w.end(); err != nil {
			return w.store.explain("close", w.path, w.broken(p, err))
		}
	}
	if err := w.hopeful(w.store.patiently(w.ctx, "close", w.path, w.finish)); err != nil {
		return w.store.explain("close", w.path, err)
	}
	w.complete = true
	return w.store.explain("close", w.path, w.store.patiently(w.ctx, "close", w.path, w.verify))
}

// finish may be repeated if a NameNode was unreachable, or waits for copies on their way.
func (w *writer) finish() error {
	message := slices.Concat(bytesField(1, []byte(w.path)), bytesField(2, w.holder))
	if w.last != nil {
		message = append(message, bytesField(3, w.last)...)
	}
	message = append(message, numberField(4, w.file)...)
	for asked := 1; ; asked++ {
		answer, err := w.ask("complete", message)
		if err != nil || number(fields(answer), 1) != 0 {
			return err
		}
		if asked == mostAsked {
			return errNotYet
		}
		if err := soon.Wait(w.ctx, asked-1); err != nil {
			return err
		}
	}
}

// soon is a short pause. A DataNode reports a block to the NameNode a moment after it has answered us: many small files
// would wait long for it together.
var soon = store.Backoff{First: 5 * time.Millisecond, Longest: 200 * time.Millisecond}

// mostAsked is how often it is asked so soon.
const mostAsked = 7

// verify compares checksums.
func (w *writer) verify() error {
	if w.link.broken || w.link.wires.ctx.Err() != nil {
		if err := w.relink(); err != nil {
			return err
		}
	}
	var got []byte
	var size int64
	var unsummed error
	err := w.store.guarded(w.ctx, w.link, func(l *link) error {
		f, err := l.Client.Open(w.path)
		if err != nil {
			return err
		}
		if err := readable(f); err != nil {
			return errors.Join(err, f.Close())
		}
		if size = f.Stat().Size(); size > 0 {
			got, unsummed = f.Checksum()
		}
		return f.Close()
	})
	if err != nil {
		return err
	}
	if size != w.sum.size {
		return &store.Error{
			Err:  fmt.Errorf("%w: HDFS has %d bytes of it, want %d", store.ErrCorrupt, size, w.sum.size),
			Hint: "try again",
		}
	}
	if size == 0 || unsummed == nil && bytes.Equal(got, w.sum.file()) {
		return nil
	}
	w.link.broken = w.link.broken || unsummed != nil // no DataNode reported the sum of a block: its content is read
	return w.readBack()
}

// relink continues with another connection.
func (w *writer) relink() error {
	if w.link == nil { // it was given back
		l, err := w.store.cluster.take(w.ctx, w.store.cluster.files)
		if err != nil {
			return err
		}
		w.use(l)
		l.broken = true // no other user may get it
		return nil
	}
	l, err := w.store.cluster.connect(w.ctx)
	if err != nil {
		return err
	}
	w.stop()
	w.link.close()
	w.use(l)
	l.broken = true
	return nil
}

func (w *writer) use(l *link) {
	w.link = l
	w.stop = context.AfterFunc(w.ctx, l.wires.close)
}

// readBack compares the content itself, where the cluster's sum is made in another way than ours.
func (w *writer) readBack() error {
	r := &reader{store: w.store, ctx: w.ctx, path: w.path, free: true} // the writer's place counts for both
	if err := r.open(); err != nil {
		return err
	}
	got, err := sumOf(r, w.size)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	if want := w.sum.file(); !bytes.Equal(got, want) {
		return &store.Error{
			Err: fmt.Errorf("%w: HDFS has checksum %x of it, want %x", store.ErrCorrupt, got, want), Hint: "try again",
		}
	}
	return nil
}

// release returns the connection. An incomplete block stays, for Resume.
func (w *writer) release() {
	if w.link == nil {
		return
	}
	if w.failed != nil || w.block != nil || !w.complete {
		w.link.broken = true
	}
	if w.block != nil {
		w.block.giveUp()
	}
	w.stop()
	w.store.cluster.give(w.link, w.store.cluster.files)
	w.link = nil
}
