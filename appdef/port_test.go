package appdef

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The table is Slider's behaviour, quirk by quirk.
func TestParsePort(t *testing.T) {
	for _, test := range []struct {
		name, value string
		claims      []PortClaim
		filled      string // with 4001, 4002, …
		bad         bool
	}{
		{name: "no pattern", value: "8080", filled: "8080"},
		{name: "no pattern, other placeholder", value: "${USER}", filled: "${USER}"},
		{name: "own", value: "${ps.ALLOCATED_PORT}", claims: []PortClaim{{}}, filled: "4001"},
		{name: "own per container", value: "${ps.ALLOCATED_PORT}{PER_CONTAINER}", claims: []PortClaim{{PerContainer: true}}, filled: "4001"},
		{name: "default", value: "${ps.ALLOCATED_PORT}{DEFAULT_7077}", claims: []PortClaim{{Want: 7077}}, filled: "4001"},
		{name: "default and per container", value: "${ps.ALLOCATED_PORT}{DEFAULT_7077}{PER_CONTAINER}", claims: []PortClaim{{Want: 7077, PerContainer: true}}, filled: "4001"},
		{name: "default 0 is any", value: "${ps.ALLOCATED_PORT}{DEFAULT_0}", claims: []PortClaim{{}}, filled: "4001"},
		{name: "wrong order leaves the rest", value: "${ps.ALLOCATED_PORT}{PER_CONTAINER}{DEFAULT_1}", claims: []PortClaim{{PerContainer: true}}, filled: "4001{DEFAULT_1}"},
		{name: "each pattern its own port", value: "[${ps.ALLOCATED_PORT},${ps.ALLOCATED_PORT}{PER_CONTAINER}]", claims: []PortClaim{{}, {PerContainer: true}}, filled: "[4001,4002]"},
		{name: "text around", value: "http://h:${ps.ALLOCATED_PORT}/x", claims: []PortClaim{{}}, filled: "http://h:4001/x"},
		{name: "another component's", value: "${worker.ALLOCATED_PORT}{PER_CONTAINER}", filled: "0"},
		{name: "another's takes all placeholders along", value: "${USER}-${worker.ALLOCATED_PORT}{DEFAULT_5}{PER_CONTAINER}-x", filled: "0-0-x"},
		{name: "own beside another's", value: "${worker.ALLOCATED_PORT},${ps.ALLOCATED_PORT}", claims: []PortClaim{{}}, filled: "${worker.ALLOCATED_PORT},4001"},
		{name: "letter case counts", value: "${PS.ALLOCATED_PORT}", filled: "0"},
		{name: "another's unclosed", value: "${worker.ALLOCATED_PORT}${x", filled: "0${x"},
		{name: "bad default", value: "${ps.ALLOCATED_PORT}{DEFAULT_x}", bad: true},
		{name: "default beyond ports", value: "${ps.ALLOCATED_PORT}{DEFAULT_65536}", bad: true},
		{name: "unclosed default", value: "${ps.ALLOCATED_PORT}{DEFAULT_80", bad: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := parsePort(test.value, "ps")
			if (err != nil) != test.bad {
				t.Fatalf("ParsePort(%q): %v", test.value, err)
			}
			if test.bad {
				return
			}
			if diff := cmp.Diff(got.Claims, test.claims); diff != "" {
				t.Errorf("claims of %q, got -, want +:\n%s", test.value, diff)
			}
			if filled := got.Fill(4001, 4002); filled != test.filled {
				t.Errorf("%q filled: got %q, want %q", test.value, filled, test.filled)
			}
		})
	}
}

func TestFillWithoutPortsIsZero(t *testing.T) {
	text, err := parsePort("a${ps.ALLOCATED_PORT}b", "ps")
	if err != nil {
		t.Fatal(err)
	}
	if got := text.Fill(); got != "a0b" {
		t.Errorf("got %q, want a0b", got)
	}
}

func TestParsePortRanges(t *testing.T) {
	for text, want := range map[string][]PortRange{
		"80":              {{80, 80}},
		"80, 90":          {{80, 80}, {90, 90}},
		"9000,9010-9020":  {{9000, 9000}, {9010, 9020}},
		"9020-9010":       {{9010, 9020}},
		" 1 - 65535 ":     {{1, 65535}},
		"":                nil,
		"x":               nil,
		"0":               nil,
		"1-70000":         nil,
		"5000-":           nil,
		"5000,":           nil,
		"5000-6000-7000":  nil,
		"99999999999999-": nil,
	} {
		got, err := ParsePortRanges(text)
		if (err != nil) != (want == nil) || !slices.Equal(got, want) {
			t.Errorf("ParsePortRanges(%q) = %v, %v; want %v", text, got, err, want)
		}
	}
}

func TestPortNeedsPutsExportsFirst(t *testing.T) {
	a := twoRoles()
	a.Components[0].Config["site.global.a.admin"] = "${ps.ALLOCATED_PORT}"
	a.Components[0].Config["site.global.bad"] = "${ps.ALLOCATED_PORT}{DEFAULT_x}"
	var keys []string
	for _, need := range a.PortNeeds("ps") {
		keys = append(keys, need.Key)
	}
	if want := []string{"global.ps.port", "global.a.admin"}; !slices.Equal(keys, want) {
		t.Errorf("got %q, want %q", keys, want)
	}
	if needs := a.PortNeeds("nobody"); needs != nil {
		t.Errorf("needs of an unknown component: %v", needs)
	}
}

// twoRoles is a settled app with a ps and a worker.
func twoRoles() App {
	config := func() map[string]string {
		return map[string]string{
			"site.global.ps.port": "${ps.ALLOCATED_PORT}{PER_CONTAINER}", "site.global.worker.port": "${worker.ALLOCATED_PORT}{PER_CONTAINER}",
			"site.global.home": "/home/${USER}", "site.global.data": "${@//site/global/home}/data", "java_home": "/opt/java",
		}
	}
	a := App{
		Name: "train", Dialect: "slider", Config: config(),
		ExportGroups: []ExportGroup{
			{Name: "ps", Exports: []Export{{Name: "host_port", Value: "${ps_HOST}:${site.global.ps.port}"}}},
			{Name: "worker", Exports: []Export{{Name: "host_port", Value: "${worker_HOST}:${site.global.worker.port}"}}},
		},
		Components: []Component{
			{Name: "ps", Category: "MASTER", Type: "STANDARD", Instances: 1, MaxInstances: -1, Priority: 1, Config: config(), CompExports: []ExportRef{{"ps", "host_port"}}},
			{Name: "worker", Category: "MASTER", Type: "STANDARD", Instances: 3, MaxInstances: -1, Priority: 2, Config: config(), CompExports: []ExportRef{{"worker", "host_port"}}},
		},
	}
	for i := range a.Components {
		a.Components[i].CommandScript = &CommandScript{Script: "scripts/x.py", Type: "PYTHON", Timeout: 600}
	}
	_ = Settle(&a, Sources{})
	return a
}
