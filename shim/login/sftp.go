package login

import (
	"errors"
	"fmt"
	"io"

	"github.com/pkg/sftp"
)

// ServeSFTP serves the files that this process sees, with its rights, to the client at in and out. It runs in the
// container, as the process's user.
func ServeSFTP(in io.Reader, out io.WriteCloser) error {
	server, err := sftp.NewServer(struct {
		io.Reader
		io.WriteCloser
	}{in, out})
	if err != nil {
		return fmt.Errorf("sftp: %w", err)
	}
	if err := server.Serve(); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("sftp: %w", err)
	}
	return nil
}
