package status

import (
	"encoding/binary"
	"errors"
	"io"
	"sync"
)

// stream is one end of an exec's connection. Frames may be written from several goroutines.
type stream struct {
	conn io.ReadWriteCloser
	mu   sync.Mutex
}

func (s *stream) write(t frameType, data []byte) error {
	b := frame{t, data}.append(make([]byte, 0, frameHead+len(data)))
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.conn.Write(b)
	return err
}

// copy sends what r gives in frames of one type, until its end.
func (s *stream) copy(t frameType, r io.Reader) error {
	b := make([]byte, frameMost)
	for {
		n, err := r.Read(b)
		if n > 0 {
			if err := s.write(t, b[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}

func uint32Bytes(n int) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }
