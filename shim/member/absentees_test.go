package member

import (
	"context"
	"testing"
	"time"
)

// TestAbsenteesEnd holds that a question to the registry does not outlive the agent, and that none is asked after it.
func TestAbsenteesEnd(t *testing.T) {
	begun, over := make(chan struct{}), make(chan struct{})
	q := absentees{changed: func() {}}
	q.begin = func() (context.Context, context.CancelFunc) { return context.WithCancel(t.Context()) }
	q.ask = func(ctx context.Context) ([]string, int, error) {
		close(begun)
		<-ctx.Done()
		close(over)
		return nil, 0, ctx.Err()
	}
	q.names(time.Now(), 1)
	<-begun
	q.close()
	select {
	case <-over:
	default:
		t.Error("the question goes on")
	}
	q.ask = func(context.Context) ([]string, int, error) {
		t.Error("asked after the end")
		return nil, 0, nil
	}
	q.names(time.Now().Add(time.Hour), 1)
	q.close()
}
