package status

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// ExecProtocol is the word of the Upgrade header that makes a connection a stream of frames:
//
//	type  1 byte
//	size  4 bytes, most significant first: that of data, at most 65,536
//	data
//
//	caller → agent
//	Stdin     bytes of input; at most ExecWindow bytes ahead of what the agent says is taken
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
// A caller that goes away hangs up on the program. Types that are not known are left out by who reads them.
const ExecProtocol = "muster-exec/1"

// ExecWindow is how many bytes of input may be under way: behind them a signal or a new size would wait.
const ExecWindow = 256 << 10

// FrameType is what a frame carries.
type FrameType byte

// The types.
const (
	FrameStdin    FrameType = 1
	FrameStdinEnd FrameType = 2
	FrameResize   FrameType = 3
	FrameSignal   FrameType = 4

	FrameTaken  FrameType = 16
	FrameStdout FrameType = 17
	FrameStderr FrameType = 18
	FrameExit   FrameType = 19
)

const (
	frameHead = 5
	frameMost = 64 << 10
)

// ErrFrame says that what came is no frame, or not one that may come now.
var ErrFrame = errors.New("not a frame of " + ExecProtocol)

// Frame is one message of a stream.
type Frame struct {
	Type FrameType
	Data []byte
}

// ReadFrame reads one. io.EOF is the end between two frames, io.ErrUnexpectedEOF one inside.
func ReadFrame(r io.Reader) (Frame, error) {
	var head [frameHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Frame{}, err
	}
	size := binary.BigEndian.Uint32(head[1:])
	if size > frameMost {
		return Frame{}, fmt.Errorf("%w: %d bytes of data, want at most %d", ErrFrame, size, frameMost)
	}
	f := Frame{Type: FrameType(head[0]), Data: make([]byte, size)}
	if _, err := io.ReadFull(r, f.Data); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	return f, nil
}

// Append adds the frame's bytes to b. Data of more than a frame holds is a mistake of the caller.
func (f Frame) Append(b []byte) []byte {
	if len(f.Data) > frameMost {
		panic(fmt.Sprintf("frame of %d bytes", len(f.Data)))
	}
	b = append(b, byte(f.Type))
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.Data)))
	return append(b, f.Data...)
}
