package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// pytorch reads what torch.save writes, as *.pt, *.pth and *.ckpt with the step as the name's last number: a zip, or
// pickles with the tensors behind them; and folders of torch.distributed.checkpoint, with the step in the folder's
// name.
func pytorch(dir fs.FS) ([]candidate, error) {
	files, folders, err := listed(dir)
	if err != nil {
		return nil, err
	}
	var all []candidate
	for name, f := range files {
		step, ok := torchStep(stem(name))
		if !ok || !slices.Contains([]string{".pt", ".pth", ".ckpt"}, path.Ext(name)) {
			continue
		}
		all = append(all, candidate{step: step, path: name, files: []File{f}, check: func(dir fs.FS) (int64, error) {
			return step, with(dir, name, wholeTorch)
		}})
	}
	for _, name := range folders {
		if c, ok := distributedFolder(dir, name); ok {
			all = append(all, c)
		}
	}
	return all, nil
}

// torchStep reads the step of a name: as Lightning writes it, `epoch=2-step=300-loss=0.32`, else the last number.
func torchStep(name string) (int64, bool) {
	for _, word := range []string{"step=", "epoch="} {
		if _, after, ok := strings.Cut(name, word); ok {
			end := strings.IndexFunc(after, func(r rune) bool { return r < '0' || r > '9' })
			if end < 0 {
				end = len(after)
			}
			if n, ok := lastNumber(after[:end]); ok {
				return n, true
			}
		}
	}
	return lastNumber(name)
}

func wholeTorch(f content) error {
	if f.size == 0 {
		return errors.New("it is empty")
	}
	head, err := f.bytesAt(0, min(headBytes, f.size))
	switch {
	case err != nil:
		return err
	case bytes.HasPrefix(head, zipMagic):
		return wholeZip(f)
	case bytes.HasPrefix(head, pickleMagic):
		return wholePickled(f)
	}
	return errors.New("neither a zip nor a pickle")
}

var pickleMagic = []byte{0x80}

// torchMagic is the first pickle of the form before PyTorch 1.6.
const torchMagic = "\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"

// wholePickled follows the pickles to the end. In PyTorch's own form five of them say how many bytes follow: for each
// key of the last one a number of elements (8 bytes), and the elements. Their types are in the persistent ids of the
// fourth.
func wholePickled(f content) error {
	u := newUnpickler(io.NewSectionReader(f, 0, f.size))
	first, err := u.next()
	if err != nil || first != any(torchMagic) {
		return unlessLarge(err)
	}
	sizes := map[string]int64{}
	var last any
	for i := range 4 {
		if last, err = u.next(); err != nil {
			return unlessLarge(err)
		}
		if i == 2 {
			storages(last, sizes)
		}
	}
	keys, ok := last.(*pickleList)
	if !ok {
		return fmt.Errorf("pickle: %w", errStrange)
	}
	want := u.offset
	for _, key := range keys.items {
		name, _ := key.(string)
		n, ok := sizes[name]
		if !ok || n > f.size {
			return errCut
		}
		want += 8 + n
	}
	if f.size < want {
		return fmt.Errorf("%d bytes, want %d: %w", f.size, want, errCut)
	}
	return nil
}

func unlessLarge(err error) error {
	if errors.Is(err, errLarge) {
		return nil
	}
	return err
}

// elementBytes are PyTorch's storages; of others at least one byte is.
var elementBytes = map[string]int64{
	"DoubleStorage": 8, "FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2,
	"LongStorage": 8, "IntStorage": 4, "ShortStorage": 2,
	"ComplexDoubleStorage": 16, "ComplexFloatStorage": 8, "QInt32Storage": 4,
}

// mostSize is more than any file has, in bytes or elements.
const mostSize = 1 << 56

// storages gathers how many bytes each storage has, of the persistent ids ('storage', type, key, place, elements,
// view).
func storages(v any, sizes map[string]int64) {
	walk(v, func(v any) {
		id, ok := v.(pickleID)
		if !ok {
			return
		}
		parts, ok := id.id.([]any)
		if !ok || len(parts) < 5 || parts[0] != any("storage") {
			return
		}
		kind, _ := parts[1].(pickleGlobal)
		key, _ := parts[2].(string)
		n, _ := parts[4].(int64)
		if n < 0 || n > mostSize {
			n = mostSize // no file has that much
		}
		sizes[key] = n * max(elementBytes[kind.name], 1)
	})
}

// walk visits every value; of what is nested without end it visits the first ones.
func walk(v any, visit func(any)) {
	seen := map[any]bool{}
	next := []any{v}
	for n := 0; len(next) > 0 && n < mostValues; n++ {
		v := next[len(next)-1]
		next = next[:len(next)-1]
		visit(v)
		switch v.(type) {
		case *pickleList, *pickleDict, *pickleObject:
			if seen[v] {
				continue
			}
			seen[v] = true
		}
		switch v := v.(type) {
		case *pickleList:
			next = append(next, v.items...)
		case *pickleDict:
			next = append(append(next, v.keys...), v.values...)
		case *pickleObject:
			next = append(next, v.of, v.args, v.state)
		case pickleID:
			next = append(next, v.id)
		case []any:
			next = append(next, v...)
		}
	}
}

// distributedFolder is a folder of torch.distributed.checkpoint: the coordinator writes `.metadata` when all ranks have
// written their files.
func distributedFolder(dir fs.FS, name string) (candidate, bool) {
	step, ok := lastNumber(name)
	entries, err := fs.ReadDir(dir, name)
	if !ok || err != nil {
		return candidate{}, false
	}
	has := func(is func(name string) bool) bool {
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return is(e.Name()) })
	}
	described := has(func(n string) bool { return n == ".metadata" })
	parts := has(func(n string) bool {
		return strings.HasPrefix(n, "__") && (path.Ext(n) == ".distcp" || !strings.Contains(n, "."))
	})
	if !described && !parts {
		return candidate{}, false
	}
	files, err := below(dir, name)
	c := candidate{step: step, path: name, files: files, check: func(dir fs.FS) (int64, error) {
		return step, distributed(dir, name, files)
	}}
	if !described {
		c.lacks = "no " + path.Join(name, ".metadata")
	}
	return c, err == nil
}

// distributed tells whether every file that the metadata names is among those of the folder, as long as what lies in
// it.
func distributed(dir fs.FS, name string, files []File) error {
	need := map[string]int64{}
	err := with(dir, path.Join(name, ".metadata"), func(f content) error {
		if f.size > mostMetadata {
			return errLarge
		}
		v, err := newUnpickler(io.NewSectionReader(f, 0, f.size)).next()
		if err != nil {
			return err
		}
		walk(v, func(v any) { storageInfo(v, need) })
		return nil
	})
	if errors.Is(err, errLarge) {
		return nil
	}
	if err != nil {
		return err
	}
	if len(need) == 0 {
		return errors.New(".metadata names no files")
	}
	there := make(map[string]int64, len(files))
	for _, f := range files {
		there[f.Name] = f.Size
	}
	for file, size := range need {
		has, ok := there[path.Join(name, file)]
		switch {
		case !fs.ValidPath(file) || !ok:
			return errors.New("no " + path.Join(name, file))
		case has < size:
			return fmt.Errorf("%s: %d bytes, want %d: %w", file, has, size, errCut)
		}
	}
	return nil
}

// storageInfo takes a `_StorageInfo(relative_path, offset, length)`.
func storageInfo(v any, need map[string]int64) {
	o, ok := v.(*pickleObject)
	if !ok {
		return
	}
	if class, ok := o.of.(pickleGlobal); !ok || class.name != "_StorageInfo" {
		return
	}
	state, ok := o.state.(*pickleDict)
	if !ok {
		return
	}
	file, _ := state.get("relative_path").(string)
	offset, _ := state.get("offset").(int64)
	length, _ := state.get("length").(int64)
	if offset >= 0 && length >= 0 && offset <= mostSize && length <= mostSize {
		need[file] = max(need[file], offset+length)
	}
}
