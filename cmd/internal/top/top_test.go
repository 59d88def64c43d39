package top

import (
	"strings"
	"testing"

	"github.com/muster-agent/muster/shim/samples"
)

func TestNewestAndSum(t *testing.T) {
	gpus := newest(samples.Table{
		Limits: samples.Limits{Memory: 4 << 30, Cores: 2}, At: []int64{5, 10},
		Memory: []*int64{new(int64(1)), new(int64(1 << 30))}, Cores: []*float64{nil, new(1.5)},
	})
	for _, tt := range []struct {
		name string
		got  use
		want string
	}{
		{"the newest", gpus, "1024 MB|4096 MB|1.50|2||"},
		{"no sample yet", newest(samples.Table{Limits: samples.Limits{Memory: 1 << 30}}), "|1024 MB||||"},
		{"two", sum([]use{gpus, gpus}), "2048 MB|8192 MB|3.00|4||"},
		{"one without limits", sum([]use{gpus, {Memory: new(int64(12 << 30))}}), "13.0 GB||1.50|||"},
		{"none", sum(nil), "|||||"},
		{
			"GPUs of several", sum([]use{
				{GPUs: 1, GPUUse: new(10.), GPUMemory: new(int64(1 << 20))}, {GPUs: 3, GPUUse: new(50.), GPUMemory: new(int64(3 << 20))}, {GPUs: 4},
			}), "||||40 %|4 MB",
		},
	} {
		if got := strings.Join(tt.got.cells(), "|"); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

// A table of one app fits 80 columns, whatever its instances use.
func TestText(t *testing.T) {
	u := use{new(int64(999_999 << 20)), 999_999 << 20, new(127.99), 128, 8, new(100.), new(int64(640 << 30))}
	o := one{App: "d1", Phase: "running", Instances: []instanceRow{
		{"worker-1000", "finishing", "a-very-long-name.example.org", u}, {"worker-0", "running", "10.0.0.1", use{}},
	}}
	const want = `d1: running

INSTANCE     PHASE      MEMORY    LIMIT     CORES   OF   GPU    GPU-MEMORY
worker-1000  finishing  976.6 GB  976.6 GB  127.99  128  100 %  640.0 GB
worker-0     running    -         -         -       -    -      -
`
	printed := func(s shown, width int) string {
		var b strings.Builder
		if err := s.print(&b, width); err != nil {
			t.Error(err)
		}
		return b.String()
	}
	if got := printed(o, 80); got != want {
		t.Errorf("got\n%s", got)
	}
	if got := printed(o, 120); !strings.Contains(got, "  a-very-long-name.example.org\n") {
		t.Errorf("wide:\n%s", got)
	}
	if got := printed(all{Apps: []appRow{{"d1", "running", 2, u}}}, 80); !strings.HasPrefix(got, "APP  PHASE    LIVE  MEMORY") {
		t.Errorf("all:\n%s", got)
	}
}

func TestScreen(t *testing.T) {
	const home, eol, below = "\x1b[H", "\x1b[K\r\n", "\x1b[J"
	for _, tt := range []struct {
		text string
		rows int
		want string
	}{
		{"a\nb\n", 10, home + "a" + eol + "b" + eol + below},
		{"a\nb\n", 0, home + "a" + eol + "b" + eol + below},
		{"a\nb\nc\nd\n", 4, home + "a" + eol + "b" + eol + "… 2" + eol + below},
		{"abcdef\nüüüü\n", 4, home + "abc" + eol + "üüü" + eol + below},
		{"a\nb\nc\n", 4, home + "a" + eol + "b" + eol + "c" + eol + below},
		{"a\nb\n", 1, home + "… 2" + eol + below},
	} {
		if got := screen(tt.text, 3, tt.rows); !strings.HasPrefix(got, home) || tt.rows != 1 && got != tt.want {
			t.Errorf("%q on %d rows: got %q, want %q", tt.text, tt.rows, got, tt.want)
		}
	}
}
