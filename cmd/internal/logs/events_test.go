package logs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/muster-agent/muster/cmd/internal/apps"
	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/registry/consul"
)

// eventful is an agent that answers when all of them were asked.
type eventful struct {
	apps.Agent
	text string
	err  error
	all  func(ctx context.Context) error
}

func (a eventful) Logs(ctx context.Context, _ string, offset int64, _ bool, to io.Writer) error {
	if err := errors.Join(a.all(ctx), a.err); err != nil {
		return err
	}
	_, err := io.WriteString(to, a.text[offset:])
	return err
}

// Agents are asked for events side by side; one that fails is named, and costs nobody the others' events.
func TestEventsOfAgents(t *testing.T) {
	line := func(s int) string {
		return fmt.Sprintf(`{"at":"2026-01-02T03:04:%02dZ","instance":"worker-0","event":"x"}`+"\n", s)
	}
	const agents = 40
	came, all := make(chan struct{}, agents), make(chan struct{})
	go func() {
		for range agents {
			<-came
		}
		close(all)
	}()
	wait := func(ctx context.Context) error {
		select {
		case <-all:
			return nil
		default:
		}
		came <- struct{}{}
		select {
		case <-all:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	reader := Reader{Elsewhere: map[string]apps.Agent{}, Facts: apps.Facts{ID: "d1", Registry: &consul.Status{}}}
	var names []string
	for i := range agents {
		in := registry.Instance{Component: "worker", Index: i}
		one := eventful{nil, line(1) + line(2) + "{", nil, wait}
		if i == 7 {
			one.err = errors.New("connection refused")
		}
		if i == 8 {
			one.text = strings.Repeat("x", mostEvents+1)
		}
		reader.Elsewhere[in.String()] = one
		names = append(names, in.String())
		m := consul.MemberStatus{Instance: in}
		m.Host = fmt.Sprintf("h%d", i)
		reader.Facts.Registry.Members = append(reader.Facts.Registry.Members, m)
	}
	e := Events{Target: apps.Target{App: "d1"}, read: map[string]int64{}, where: map[string]string{}}
	found, gone, err := e.gather(t.Context(), reader, names)
	if want := []string{"worker-7 on h7", "worker-8 on h8"}; err != nil || len(found) != 2*(agents-2) || !slices.Equal(gone, want) {
		t.Errorf("%d events, gone %q, %v", len(found), gone, err)
	}
	found, _, err = e.gather(t.Context(), reader, names)
	if err != nil || len(found) != 0 {
		t.Errorf("the same again: %d events, %v", len(found), err)
	}
	e.Target.Instance = &registry.Instance{Component: "worker", Index: 7}
	if _, _, err := e.gather(t.Context(), reader, names[7:8]); err == nil || !strings.Contains(err.Error(), "d1/worker-7: connection refused") {
		t.Errorf("of one alone: %v", err)
	}
}

// What agents send is bounded in all, too.
func TestEventsAreBounded(t *testing.T) {
	var left atomic.Int64
	left.Store(10)
	one, other := bounded{left: &left}, bounded{left: &left}
	_, first := io.WriteString(&one, "12345678")
	_, second := io.WriteString(&other, "123")
	if first != nil || second == nil || !strings.HasPrefix(second.Error(), "more than 67108864 bytes of events of one instance") {
		t.Errorf("%v, %v", first, second)
	}
}
