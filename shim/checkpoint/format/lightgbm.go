package format

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"strconv"
)

var (
	snapshotForm  = regexp.MustCompile(`\.snapshot_iter_(\d{1,18})$`)
	lightgbmMagic = []byte("tree\n")
)

// lightgbm reads models as text: the command line's snapshots `….snapshot_iter_N`, and *.txt and *.model with the
// rounds as the last number of their names.
func lightgbm(dir fs.FS) ([]candidate, error) {
	files, _, err := listed(dir)
	if err != nil {
		return nil, err
	}
	var all []candidate
	for name, f := range files {
		rounds, ok := int64(0), false
		if m := snapshotForm.FindStringSubmatch(name); m != nil {
			n, err := strconv.ParseInt(m[1], 10, 64)
			rounds, ok = n, err == nil
		} else if ext := path.Ext(name); ext == ".txt" || ext == ".model" {
			rounds, ok = lastNumber(stem(name))
		}
		if !ok {
			continue
		}
		all = append(all, candidate{step: rounds, path: name, files: []File{f}, check: func(dir fs.FS) (int64, error) {
			return rounds, with(dir, name, wholeLightGBM)
		}})
	}
	return all, nil
}

// tailBytes is what follows the trees of a large model: parameters, and the categories of a data frame.
const tailBytes = 1 << 20

// wholeLightGBM: the parameters end with their last line; Python's package writes the categories behind them, as one
// line.
func wholeLightGBM(f content) error {
	if head, err := f.bytesAt(0, min(int64(len(lightgbmMagic)), f.size)); err != nil ||
		!bytes.Equal(head, lightgbmMagic) {
		return errors.Join(err, errors.New("not a model of LightGBM"))
	}
	n := min(tailBytes, f.size)
	tail, err := f.bytesAt(f.size-n, n)
	if err != nil {
		return err
	}
	_, rest, ok := bytes.Cut(tail, []byte("\nend of parameters\n"))
	categories := bytes.TrimLeft(rest, "\n")
	if !ok || len(categories) > 0 && !bytes.HasSuffix(categories, []byte("\n")) {
		return errCut
	}
	return nil
}
