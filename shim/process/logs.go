package process

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/muster-agent/muster/shim/files"
)

// Logs is the log folder of an instance. It belongs to the process: no file in it is opened by a name that could lead
// out of it.
type Logs struct {
	Dir  string
	Log  *slog.Logger
	User files.User // its owner
}

// Limits of a command's output, in bytes.
const (
	mostOutput     = 16 << 20
	mostStructured = 1 << 20
)

func (l Logs) path(name string) string { return filepath.Join(l.Dir, name) }

func (l Logs) open() (files.UserFolder, error) {
	folder, err := files.Below(l.Dir)
	if err != nil {
		return files.UserFolder{}, err
	}
	return l.User.In(folder.Root), nil
}

// sizes are the sizes of the process's logs.
func (l Logs) sizes() map[string]int64 {
	sizes := map[string]int64{}
	for _, name := range []string{"stdout.log", "stderr.log"} {
		sizes[name] = files.PlainSize(l.path(name))
	}
	return sizes
}

// Tail is the end of a log: at most so many bytes, and none before from.
func (l Logs) Tail(name string, from, most int64) string {
	f, err := files.OpenPlain(l.path(name))
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	if info.Size() < from {
		from = 0 // rotated since
	}
	text, err := io.ReadAll(io.NewSectionReader(f, max(from, info.Size()-most), most))
	if err != nil {
		return ""
	}
	return string(text)
}

// keep writes a stream into a new file of the log folder, and its end to also. Output beyond the limit is read and
// dropped: the command must not wait for its reader.
func (l Logs) keep(name string, from io.Reader, also io.Writer) {
	f, err := l.replace(name)
	if err != nil {
		l.Log.Warn("output of a command lost", "file", name, "err", err)
		_, _ = io.Copy(also, from)
		return
	}
	n, err := io.CopyN(io.MultiWriter(f, also), from, mostOutput)
	if n == mostOutput {
		_, err = fmt.Fprintf(f, "\n… more than %d bytes: the rest was dropped\n", mostOutput)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		l.Log.Warn("output of a command lost", "file", name, "err", err)
	}
	_, _ = io.Copy(also, from)
	if err := f.Close(); err != nil {
		l.Log.Warn("output of a command lost", "file", name, "err", err)
	}
}

// replace makes a new file of a name in the log folder.
func (l Logs) replace(name string) (*os.File, error) {
	folder, err := l.open()
	if err != nil {
		return nil, err
	}
	defer folder.Close()
	return folder.New(name)
}

// structured reads a script's answer in JSON; nil: there is none.
func (l Logs) structured(name string) []byte {
	f, err := files.OpenPlain(l.path(name))
	if err != nil {
		return nil
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostStructured))
	if err != nil {
		return nil
	}
	return text
}
