package checkpoint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// SetAside gives what is newer than a step another place in its folder, `.muster-set-aside-<why>/`, whole or torn: a program
// that looks for itself must not go on from what the others of its gang do not have. It gives the names of what was moved.
// Nothing is ever deleted or replaced: where that folder is there already (an earlier life of the registry had this generation,
// too, or another host does the same) it has a number more, `.muster-set-aside-<why>.1/`.
func SetAside(root *os.Root, found Found, step int64, why string) ([]string, error) {
	to, err := asideFolder(root, why)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Remove(to) }() // where nothing came into it
	var moved []string
	move := func(name string, files []File) error {
		for _, one := range tops(name, files) {
			err := root.MkdirAll(path.Join(to, path.Dir(one)), 0o755)
			if err == nil {
				err = root.Rename(one, path.Join(to, one))
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // its program has removed it
				return fmt.Errorf("set %s aside: %w", one, err)
			}
		}
		moved = append(moved, name)
		return nil
	}
	var all error
	for _, c := range found.Whole {
		if c.Step > step {
			all = errors.Join(all, move(c.Path, c.Files))
		}
	}
	for _, t := range found.Torn {
		if t.Step > step {
			all = errors.Join(all, move(t.Path, t.Files))
		}
	}
	return moved, all
}

// mostAside bounds the folders of one generation.
const mostAside = 10000

// asideFolder makes a folder that nobody has used.
func asideFolder(root *os.Root, why string) (string, error) {
	first := ownNames + "set-aside-" + why
	to := first
	for n := 1; ; n++ {
		err := root.Mkdir(to, 0o755)
		if !errors.Is(err, fs.ErrExist) || n > mostAside {
			return to, err
		}
		to = first + "." + strconv.Itoa(n)
	}
}

// tops are what has to be moved: a folder as such, else its files; those first without which it is not whole.
func tops(name string, files []File) []string {
	var all []string
	for _, f := range slices.Backward(files) {
		one := f.Name
		if strings.HasPrefix(one, name+"/") {
			one = name
		}
		if !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// The file in which TensorFlow keeps what its newest checkpoint is, and a line of it.
const stateName = "checkpoint"

var stateLine = regexp.MustCompile(`^(all_)?model_checkpoint_paths?:`)

// WriteState has TensorFlow's own file name a checkpoint as the newest: it believes the file, not the folder. Older ones of the
// folder stay named, so that their turn to be removed comes. Other frameworks have no such file, and then nothing is done.
func WriteState(root *os.Root, framework string, found Found, newest Checkpoint, owner *Owner) error {
	if framework != "tensorflow" && framework != "tensor2tensor" {
		return nil
	}
	lines := []string{"model_checkpoint_path: " + quoted(newest.Path) + "\n"}
	for _, c := range found.Whole {
		if c.Step < newest.Step {
			lines = append(lines, "all_model_checkpoint_paths: "+quoted(c.Path)+"\n")
		}
	}
	text := strings.Join(append(lines, "all_model_checkpoint_paths: "+quoted(newest.Path)+"\n"), "")
	if old, err := ReadSmall(root, stateName); err == nil && string(keepLines(old)) == text {
		return nil
	}
	tmp := ownNames + stateName + "-" + rand.Text() // agents of several hosts may do so in one folder
	err := WriteNew(root, tmp, text)
	if err == nil && owner != nil {
		err = root.Lchown(tmp, owner.UID, owner.GID)
	}
	if err == nil {
		err = root.Rename(tmp, stateName)
	}
	if err != nil {
		return errors.Join(err, root.RemoveAll(tmp))
	}
	return nil
}

// DropState removes TensorFlow's own file: there is no checkpoint that it could name.
func DropState(root *os.Root, framework string) error {
	if framework != "tensorflow" && framework != "tensor2tensor" {
		return nil
	}
	if err := root.Remove(stateName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// mostSmall is more than any of the small files here has, in bytes.
const mostSmall = 1 << 20

// ReadSmall reads a small file of a folder that a process may do with as it likes: one without an end is cut, a pipe refused.
func ReadSmall(root *os.Root, name string) (_ []byte, err error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("%s is no file", name))
	}
	return io.ReadAll(io.LimitReader(f, mostSmall))
}

// WriteNew writes a file in the place of whatever has its name, to the disk: renamed, it is whole also after a loss of power.
func WriteNew(root *os.Root, name, text string) error {
	if err := root.RemoveAll(name); err != nil {
		return err
	}
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// keepLines are those lines of a state that name checkpoints.
func keepLines(text []byte) []byte {
	var out []byte
	for line := range strings.Lines(string(text)) {
		if stateLine.MatchString(line) {
			out = append(out, line...)
		}
	}
	return out
}

// quoted is a text as protocol buffers' text format has it.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}
