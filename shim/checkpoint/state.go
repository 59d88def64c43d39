package checkpoint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/muster-agent/muster/shim/checkpoint/format"
	"github.com/muster-agent/muster/shim/files"
)

// stateName is the file in which TensorFlow names its newest checkpoint.
const stateName = "checkpoint"

var stateLine = regexp.MustCompile(`^(all_)?model_checkpoint_paths?:`)

// writeState has TensorFlow's own file name a checkpoint as the newest: it believes the file, not the folder. Older
// ones of the folder stay named, so that their turn to be removed comes. Other frameworks have no such file, and then
// nothing is done.
func writeState(root files.UserFolder, framework string, found format.Found, newest format.Checkpoint) error {
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
	if old, err := readSmall(root, stateName); err == nil && string(keepLines(old)) == text {
		return nil
	}
	return replaceState(root, text)
}

// replaceState puts a state file in the place of another.
func replaceState(root files.UserFolder, text string) error {
	tmp := ownNames + stateName + "-" + rand.Text() // agents of several hosts may do so in one folder
	err := writeNew(root, tmp, text)
	if err == nil {
		err = root.Rename(tmp, stateName)
	}
	if err != nil {
		return errors.Join(err, root.RemoveAll(tmp))
	}
	return nil
}

// dropState removes TensorFlow's own file: there is no checkpoint that it could name.
func dropState(root files.UserFolder, framework string) error {
	if framework != "tensorflow" && framework != "tensor2tensor" {
		return nil
	}
	if err := root.Remove(stateName); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// RewriteStates replaces the folder from by the folder to in TensorFlow's own state files below a checkpoint folder:
// TensorFlow writes absolute paths, and does not resume from a folder that was moved. A start does not call it: it
// writes the file only where it brings or quarantines checkpoints.
func RewriteStates(dir, from, to string) error {
	top, err := files.Below(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	err = fs.WalkDir(top.FS(), ".", func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == stateName && e.Type().IsRegular() {
			err = rewriteState(top.Root, filepath.Dir(path), from, to)
		}
		if errors.Is(err, fs.ErrPermission) { // of another user: the move does not fail for it
			return nil
		}
		return err
	})
	return errors.Join(err, top.Close())
}

// rewriteState replaces the file of a folder, with the rights of the folder's owner.
func rewriteState(top *os.Root, dir, from, to string) (err error) {
	root, err := top.OpenRoot(dir)
	if err != nil {
		return err
	}
	owner, err := files.OwnerOf(root)
	folder := owner.In(root)
	defer func() { err = errors.Join(err, folder.Close()) }()
	if err != nil {
		return err
	}
	text, err := readSmall(folder, stateName)
	if err != nil || len(text) == mostSmall {
		return err
	}
	next := strings.ReplaceAll(string(text), strings.TrimSuffix(quoted(from+"/"), `"`),
		strings.TrimSuffix(quoted(to+"/"), `"`))
	if next == string(text) {
		return nil
	}
	return replaceState(folder, next)
}

// mostSmall is more than any of the small files here has, in bytes.
const mostSmall = 1 << 20

// readSmall reads a small file of a folder that a process may do with as it likes: one without an end is cut, a pipe
// refused.
func readSmall(root files.UserFolder, name string) (_ []byte, err error) {
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

// writeNew writes a file in the place of whatever has its name, to the disk: renamed, it is whole also after a loss of
// power.
func writeNew(root files.UserFolder, name, text string) error {
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
