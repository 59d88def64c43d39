package timeline

import (
	"bufio"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/muster-agent/muster/shim/journal"
	"github.com/muster-agent/muster/shim/machine"
)

var epoch = time.Date(2030, 1, 2, 3, 4, 0, 0, time.UTC)

// eventsOf reads lines of: SECOND INSTANCE GENERATION ATTEMPT FROM TO CAUSE…; a FROM of `-` is an event, named by TO.
func eventsOf(t *testing.T, text string) []journal.Line {
	t.Helper()
	var all []journal.Line
	for s := bufio.NewScanner(strings.NewReader(text)); s.Scan(); {
		words := strings.Fields(s.Text())
		if len(words) == 0 {
			continue
		}
		at, err := strconv.ParseFloat(words[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		gen, _ := strconv.Atoi(words[2])
		attempt, _ := strconv.Atoi(words[3])
		l := journal.Line{
			At: epoch.Add(time.Duration(at * float64(time.Second))), Instance: words[1], Generation: gen, Attempt: attempt,
			From: machine.Phase(words[4]), To: machine.Phase(words[5]), Cause: strings.Join(words[6:], " "),
		}
		if words[4] == "-" {
			l.Event, l.From, l.To = words[5], machine.Running, machine.Running
		}
		all = append(all, l)
	}
	return all
}

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		name, events string
		now          float64 // seconds
		want         map[string]float64
		ratio        float64
		generations  string
	}{
		{
			name: "a gang starts again from a checkpoint", now: 100,
			events: `
				0  worker-0 0 0 claiming staging
				2  worker-0 0 0 staging installed
				2  worker-0 1 0 installed waiting
				5  worker-0 1 1 waiting running
				0  worker-1 0 0 claiming staging
				4  worker-1 0 0 staging installed
				4  worker-1 1 0 installed waiting
				5  worker-1 1 1 waiting running
				15 worker-0 1 1 - checkpoint step 10 is complete
				20 worker-1 1 1 running finishing exited with 3
				21 worker-1 1 1 finishing installed generation 2 forms: worker-1 exited with 3
				21 worker-0 1 1 running stopping generation 2 forms: worker-1 exited with 3
				22 worker-0 1 1 stopping installed killed by SIGTERM
				23 worker-0 2 1 installed waiting
				23 worker-1 2 1 installed waiting
				25 worker-0 2 2 waiting running
				25 worker-1 2 2 waiting running
				45 worker-0 2 2 running finishing exited with 0
				45 worker-1 2 2 running finishing exited with 0
				46 worker-0 2 2 finishing leaving all are done
				46 worker-1 2 2 finishing leaving all are done
				47 worker-0 2 2 leaving done
				47 worker-1 2 2 leaving done`,
			want: map[string]float64{
				staging: 6, barrier: 4, productive: 10 + 10 + 20 + 20, lost: 6 + 5, restarting: 4 + 5, leaving: 4,
			},
			ratio: 60. / 94, generations: "1 at 5; 2 at 25: worker-1 exited with 3; ",
		},
		{
			name: "in place, without a checkpoint, while it runs", now: 12,
			events: `
				0 ps-0 0 0 claiming staging
				1 ps-0 0 0 staging installed
				1 ps-0 1 0 installed waiting
				2 ps-0 1 1 waiting running
				6 ps-0 1 1 running backoff exited with 2; restarting 1/5
				7 ps-0 1 2 backoff running`,
			want: map[string]float64{staging: 1, barrier: 1, lost: 4, restarting: 1, productive: 5}, ratio: 5. / 12,
			generations: "1 at 2; ",
		},
		{name: "nothing has happened", now: 5, want: map[string]float64{}, ratio: math.NaN()},
		{
			name: "it waits", now: 9, events: "0 w-0 0 0 claiming staging\n1 w-0 0 0 staging installed\n1 w-0 1 0 installed waiting\n",
			want: map[string]float64{staging: 1, barrier: 8}, generations: "1 at 1; ",
		},
	} {
		now := epoch.Add(time.Duration(tt.now * float64(time.Second)))
		lines := eventsOf(t, tt.events)
		for range 2 { // the order of the lines does not matter
			got := Of(lines, now)
			sum, all := 0.0, 0.0
			for _, k := range Kinds() {
				if math.Abs(got.Spent[k]-tt.want[k]) > 1e-6 {
					t.Errorf("%s: %s: got %v, want %v", tt.name, k, got.Spent[k], tt.want[k])
				}
				sum += got.Spent[k]
			}
			for _, s := range got.Spans {
				end := now
				if s.To != nil {
					end = *s.To
				}
				all += end.Sub(s.From).Seconds()
			}
			if math.Abs(sum-all) > 1e-6 {
				t.Errorf("%s: the account has %v s, the spans %v s", tt.name, sum, all)
			}
			if got.Ratio == nil != math.IsNaN(tt.ratio) || got.Ratio != nil && math.Abs(*got.Ratio-tt.ratio) > 1e-6 {
				t.Errorf("%s: ratio %v, want %v", tt.name, got.Ratio, tt.ratio)
			}
			said := ""
			for _, g := range got.Generations {
				said += strconv.Itoa(g.Number) + " at " + strconv.FormatFloat(g.At.Sub(epoch).Seconds(), 'f', -1, 64)
				if g.Why != "" {
					said += ": " + g.Why
				}
				said += "; "
			}
			if said != tt.generations {
				t.Errorf("%s: generations %q, want %q", tt.name, said, tt.generations)
			}
			var byInstance []journal.Line // as separate files give them
			for _, name := range []string{"worker-1", "worker-0", "ps-0", "w-0"} {
				for _, l := range lines {
					if l.Instance == name {
						byInstance = append(byInstance, l)
					}
				}
			}
			lines = byInstance
		}
	}
}
