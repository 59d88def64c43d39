package format

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tensorflow reads what tf.train.Saver and tf.train.Checkpoint write: the V2 format, `<prefix>-<step>.index` beside
// every shard of `<prefix>-<step>.data-00000-of-0000N`, and the V1 format, one file `<prefix>-<step>` or its shards
// `<prefix>-<step>-00000-of-0000N`. A SavedModel (variables/variables.index) is an export and no checkpoint.
func tensorflow(dir fs.FS) ([]candidate, error) {
	files, _, err := listed(dir)
	if err != nil {
		return nil, err
	}
	sets := shardSets(files)
	var all []candidate
	for name := range files {
		prefix, ok := strings.CutSuffix(name, ".index")
		if !ok || prefix == "" || prefix == "variables" {
			continue
		}
		all = append(all, bundle(files, prefix, sets[prefix+".data"]))
	}
	for prefix, set := range sets {
		base, ok := strings.CutSuffix(prefix, ".data")
		if _, indexed := files[base+".index"]; ok && !indexed { // the index is written last
			step, numbered := stepOf(base)
			if numbered {
				all = append(all, candidate{
					step: step, path: base, files: slices.Collect(set.files(files)),
					lacks: "no " + base + ".index",
				})
			}
		}
		if !ok && strings.Contains(prefix, "ckpt") {
			all = append(all, oldShards(files, prefix, set)...)
		}
	}
	for name, f := range files {
		if step, ok := stepOf(name); ok && oldForm(files, name) {
			all = append(all, candidate{
				step: step, path: name, files: append(beside(files, name+".meta"), f),
				check: func(dir fs.FS) (int64, error) {
					return step, with(dir, name, wholeTable)
				},
			})
		}
	}
	return all, nil
}

// shards are what `-of-` names of a file in parts.
type shards struct {
	prefix string
	have   map[int]string
	total  int
}

var shardForm = regexp.MustCompile(`^(.+)-(\d{5,})-of-(\d{5,})$`)

func shardSets(files map[string]File) map[string]*shards {
	sets := map[string]*shards{}
	for name := range files {
		m := shardForm.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		i, errI := strconv.Atoi(m[2])
		n, errN := strconv.Atoi(m[3])
		if errI != nil || errN != nil || i >= n || n > MostFiles {
			continue
		}
		if sets[m[1]] == nil {
			sets[m[1]] = &shards{prefix: m[1], have: map[int]string{}}
		}
		sets[m[1]].have[i], sets[m[1]].total = name, max(n, sets[m[1]].total)
	}
	return sets
}

// lacks names the first part that is not there; empty: all are.
func (s *shards) lacks() string {
	for i := range s.total {
		if s.have[i] == "" {
			return fmt.Sprintf("no %s-%05d-of-%05d", s.prefix, i, s.total)
		}
	}
	return ""
}

func (s *shards) files(all map[string]File) func(func(File) bool) {
	return func(yield func(File) bool) {
		for i := range s.total {
			if f, ok := all[s.have[i]]; ok && !yield(f) {
				return
			}
		}
	}
}

// bundle is a checkpoint of the V2 format.
func bundle(files map[string]File, prefix string, set *shards) candidate {
	step, numbered := stepOf(prefix)
	if !numbered {
		step = -1
	}
	index := files[prefix+".index"]
	c := candidate{step: step, path: prefix, files: beside(files, prefix+".meta")}
	if set != nil {
		c.files = append(c.files, slices.Collect(set.files(files))...)
	}
	c.files = append(c.files, index)
	if set == nil {
		c.lacks = "no " + prefix + ".data-00000-of-00001"
		return c
	}
	c.lacks = set.lacks()
	c.check = func(dir fs.FS) (int64, error) {
		var b bundleIndex
		err := with(dir, index.Name, func(f content) (err error) { b, err = readBundle(f); return err })
		if err != nil {
			return -1, err
		}
		if err := b.fits(set, files); err != nil {
			return -1, err
		}
		return b.step(dir, set), nil
	}
	return c
}

// oldForm tells a file of the V1 format by its name: no suffix, as Saver names it.
func oldForm(files map[string]File, name string) bool {
	_, indexed := files[name+".index"]
	_, meta := files[name+".meta"]
	return !indexed && !shardForm.MatchString(name) && (meta || strings.Contains(name, "ckpt")) &&
		!strings.HasPrefix(name, "events.out.")
}

func oldShards(files map[string]File, prefix string, set *shards) []candidate {
	step, ok := stepOf(prefix)
	if !ok {
		return nil
	}
	c := candidate{step: step, path: prefix, files: slices.Collect(set.files(files)), lacks: set.lacks()}
	if meta, ok := files[prefix+".meta"]; ok {
		c.files = append(c.files, meta)
	}
	c.check = func(dir fs.FS) (int64, error) {
		for _, name := range set.have {
			if err := with(dir, name, wholeTable); err != nil {
				return step, err
			}
		}
		return step, nil
	}
	return []candidate{c}
}

var stepForm = regexp.MustCompile(`-(\d{1,18})$`)

// stepOf reads the step at the end of a prefix.
func stepOf(prefix string) (int64, bool) {
	m := stepForm.FindStringSubmatch(prefix)
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n, err == nil
}

// beside are those of these names that are there.
func beside(files map[string]File, names ...string) []File {
	var all []File
	for _, name := range names {
		if other, ok := files[name]; ok {
			all = append(all, other)
		}
	}
	return all
}

// bundleIndex is what an index of the V2 format says (tensor_bundle.proto).
type bundleIndex struct {
	shards  int
	tensors map[string]tensor
}

type tensor struct {
	kind         uint64 // DataType: 3 int32, 9 int64
	shard        int
	offset, size int64
}

func readBundle(f content) (bundleIndex, error) {
	rows, err := readTable(f)
	if err != nil {
		return bundleIndex{}, err
	}
	header, ok := rows[""]
	if !ok {
		return bundleIndex{}, errors.New("index without a header")
	}
	b := bundleIndex{tensors: make(map[string]tensor, len(rows))}
	fields, err := protobuf(header)
	if err != nil {
		return b, err
	}
	b.shards = int(fields[1]) //nolint:gosec // compared, never an index
	for key, value := range rows {
		if key == "" {
			continue
		}
		fields, err := protobuf(value)
		if err != nil {
			return b, err
		}
		//nolint:gosec // checked below
		t := tensor{kind: fields[1], shard: int(fields[3]), offset: int64(fields[4]), size: int64(fields[5])}
		if t.shard < 0 || t.shard >= max(b.shards, 1) || t.offset < 0 || t.size < 0 {
			return b, fmt.Errorf("index: tensor %q lies nowhere", key)
		}
		b.tensors[key] = t
	}
	return b, nil
}

// fits tells whether every tensor lies in a shard that is there.
func (b bundleIndex) fits(set *shards, files map[string]File) error {
	if b.shards != set.total {
		return fmt.Errorf("index of %d shards, %d are there", b.shards, set.total)
	}
	for key, t := range b.tensors {
		f := files[set.have[t.shard]]
		if t.size > f.Size || t.offset > f.Size-t.size {
			return fmt.Errorf("%s: %d bytes, tensor %q ends after: %w", f.Name, f.Size, key, errCut)
		}
	}
	return nil
}

// stepNames are the variables that count steps, the surest first: of TensorFlow 1, of tf.train.Checkpoint(step=…), of
// Keras' optimizers, and the number of saves.
var stepNames = []string{
	"global_step", "step/.ATTRIBUTES/VARIABLE_VALUE", "global_step/.ATTRIBUTES/VARIABLE_VALUE",
	"optimizer/_iterations/.ATTRIBUTES/VARIABLE_VALUE",
	"optimizer/iter/.ATTRIBUTES/VARIABLE_VALUE", "save_counter/.ATTRIBUTES/VARIABLE_VALUE",
}

// step reads the step that the variables have; -1: none counts.
func (b bundleIndex) step(dir fs.FS, set *shards) int64 {
	for _, name := range stepNames {
		t, ok := b.tensors[name]
		if !ok {
			continue
		}
		n := int64(-1)
		err := with(dir, set.have[t.shard], func(f content) error {
			text, err := f.bytesAt(t.offset, min(t.size, 8))
			switch {
			case err != nil:
			case t.kind == 9 && len(text) == 8:
				n = int64(binary.LittleEndian.Uint64(text)) //nolint:gosec // checked by the caller
			case t.kind == 3 && len(text) == 4:
				n = int64(binary.LittleEndian.Uint32(text))
			}
			return err
		})
		if err == nil && n >= 0 {
			return n
		}
	}
	return -1
}
