package gpu

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMissed(t *testing.T) {
	for _, tt := range []struct {
		name        string
		before, now Vitals
		want        []Event
	}{
		{"nothing", Vitals{Index: 2, RemapPending: true, DoubleBitErrors: 1}, Vitals{Index: 2, RemapPending: true, DoubleBitErrors: 1}, nil},
		{"lost", Vitals{Recovery: "gpu-reset"}, Vitals{Index: 2, Lost: true}, []Event{{Kind: EventUnavailable, Device: "GPU-a", Index: 2, Text: "the GPU is lost"}}},
		{"lost before", Vitals{Lost: true}, Vitals{Index: 2, Lost: true}, nil},
		{"reset", Vitals{}, Vitals{Index: 2, ResetRequired: true}, []Event{{Kind: EventUnavailable, Device: "GPU-a", Index: 2, Text: "the GPU must be reset"}}},
		{"errors", Vitals{DoubleBitErrors: 1}, Vitals{Index: 2, DoubleBitErrors: 2}, []Event{{Kind: EventECC, Device: "GPU-a", Index: 2}}},
		{"recovery", Vitals{}, Vitals{Index: 2, Recovery: "drain-p2p"}, []Event{{Kind: EventRecovery, Device: "GPU-a", Index: 2, Recovery: "drain-p2p"}}},
		{"recovered", Vitals{Recovery: "drain-p2p"}, Vitals{Index: 2}, []Event{{Kind: EventRecovery, Device: "GPU-a", Index: 2}}},
	} {
		if diff := cmp.Diff(tt.want, missed("GPU-a", tt.before, tt.now)); diff != "" {
			t.Errorf("%s: -want +got\n%s", tt.name, diff)
		}
	}
}

func TestVitalsOf(t *testing.T) {
	all := []Vitals{{Index: 0, UUID: "GPU-b", RemapPending: true}, {Index: 1, Lost: true}}
	for _, tt := range []struct {
		uuid  string
		index int
		want  Vitals
	}{
		{"GPU-b", 1, Vitals{Index: 1, UUID: "GPU-b", RemapPending: true}},
		{"GPU-a", 0, Vitals{Index: 0, UUID: "GPU-a", Lost: true}},
		{"", 1, Vitals{Index: 1, Lost: true}},
	} {
		if got := vitalsOf(tt.uuid, tt.index, all); got != tt.want {
			t.Errorf("%q: got %+v, want %+v", tt.uuid, got, tt.want)
		}
	}
}
