package status

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// execProtocol is the value of the Upgrade header that makes a connection a stream of frames:
//
//	type  1 byte
//	size  4 bytes, most significant first: that of data, at most 65,536
//	data
//
//	caller → agent
//	Stdin     bytes of input; at most execWindow bytes ahead of what the agent says is taken
//	StdinEnd  no more will come
//	Resize    rows, columns, 2 bytes each: the terminal's new size
//	Signal    1 byte, the number: to the program's process group
//
//	agent → caller
//	Taken     4 bytes: so many bytes of input have gone to the program
//	Stdout    bytes of output; on a terminal all of them
//	Stderr    bytes of output
//	Exit      ExecExit as JSON; the last frame
//
// When the caller closes the connection the program gets a hangup. A reader skips types that it does not know.
const execProtocol = "muster-exec/1"

// execWindow is how many bytes of input may be under way: a signal or a new size would wait behind them.
const execWindow = 256 << 10

// frameType is what a frame carries.
type frameType byte

// The types.
const (
	frameStdin    frameType = 1
	frameStdinEnd frameType = 2
	frameResize   frameType = 3
	frameSignal   frameType = 4

	frameTaken  frameType = 16
	frameStdout frameType = 17
	frameStderr frameType = 18
	frameExit   frameType = 19
)

const (
	frameHead = 5
	frameMost = 64 << 10
)

// errFrame refuses bytes that are no frame, or a frame that may not come now.
var errFrame = errors.New("not a frame of " + execProtocol)

// frame is one message of a stream.
type frame struct {
	Type frameType
	Data []byte
}

// readFrame reads one frame. io.EOF is the end between two frames, io.ErrUnexpectedEOF one inside.
func readFrame(r io.Reader) (frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > frameMost {
		return frame{}, fmt.Errorf("%w: %d bytes of data, want at most %d", errFrame, size, frameMost)
	}
	f := frame{Type: frameType(head[0]), Data: make([]byte, size)}
	if _, err := io.ReadFull(r, f.Data); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	return f, nil
}

// append adds the frame's bytes to b. Data of more than a frame holds is a mistake of the caller.
func (f frame) append(b []byte) []byte {
	if len(f.Data) > frameMost {
		panic(fmt.Sprintf("frame of %d bytes", len(f.Data)))
	}
	b = append(b, byte(f.Type))
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.Data)))
	return append(b, f.Data...)
}
