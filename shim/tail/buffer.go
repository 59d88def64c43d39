package tail

import "sync"

// Buffer keeps the end of what was written to it.
type Buffer struct {
	mu   sync.Mutex
	text []byte
}

const lastBytes = 16 << 10

func (l *Buffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	if over := len(l.text) - lastBytes; over > 0 {
		l.text = append([]byte(nil), l.text[over:]...)
	}
	return len(b), nil
}

// String is what was kept.
func (l *Buffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
