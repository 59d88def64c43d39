package ports

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseRanges(t *testing.T) {
	for _, c := range []struct {
		text string
		want Ranges
	}{
		{"20000-29999", Ranges{{20000, 29999}}},
		{"48000, 49000,50001-50010", Ranges{{48000, 48000}, {49000, 49000}, {50001, 50010}}},
		{" 1 - 65535 ", Ranges{{1, 65535}}},
	} {
		got, err := ParseRanges(c.text)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%q: %v -want +got:\n%s", c.text, err, diff)
		}
		if again, err := ParseRanges(got.String()); err != nil || !cmp.Equal(got, again) {
			t.Errorf("%q prints as %q", c.text, got)
		}
	}
	for _, text := range []string{"", ",", "0", "65536", "5-4", "a", "1-", "-1", "1-2-3", "20000-29999,"} {
		if got, err := ParseRanges(text); err == nil {
			t.Errorf("%q = %v, want an error", text, got)
		}
	}
}

func TestWithout(t *testing.T) {
	for _, c := range []struct{ from, less, want string }{
		{"20-29", "30-40", "20-29"},
		{"20-29", "25-40", "20-24"},
		{"20-29", "10-24", "25-29"},
		{"20-29", "22,24-25,29", "20-21,23,26-28"},
		{"20-29,40-49", "25-44", "20-24,45-49"},
		{"20-29", "20-29", ""},
	} {
		if got := ranges(t, c.from).Without(ranges(t, c.less)).String(); got != c.want {
			t.Errorf("%s without %s = %s, want %s", c.from, c.less, got, c.want)
		}
	}
}

func TestUsable(t *testing.T) {
	for _, c := range []struct {
		name, asked, ephemeral, reserved string
		want, warning, err               string
	}{
		{"as kernels come", "20000-29999", "32768\t60999\n", "\n", "20000-29999", "", ""},
		{"a reserved one", "20000-29999", "32768\t60999\n", "20005,25000-25010\n", "20000-20004,20006-24999,25011-29999", "", ""},
		{"overlap", "20000-29999", "25000 60999", "", "20000-24999", "", ""},
		{"all ephemeral", "20000-29999", "1024\t65535", "20000", "20001-29999", "all ports of 20000-29999 lie in the ephemeral range 1024-65535", ""},
		{"all reserved", "20000", "1024\t65535", "20000-20001", "", "", "all are in ip_local_reserved_ports"},
		{"no such files", "20000-29999", "", "", "20000-29999", "", ""},
		{"no numbers", "20000-29999", "many", "", "", "", "ip_local_port_range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			dir := filepath.Join(root, "proc/sys/net/ipv4")
			err := os.MkdirAll(dir, 0o755)
			for name, text := range map[string]string{"ip_local_port_range": c.ephemeral, "ip_local_reserved_ports": c.reserved} {
				if text != "" {
					err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			got, warning, err := Usable(ranges(t, c.asked), root)
			if got.String() != c.want || !strings.HasPrefix(warning, c.warning) || (warning == "") != (c.warning == "") {
				t.Errorf("got %s, warning %q; want %s, %q", got, warning, c.want, c.warning)
			}
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("error %v, want %q", err, c.err)
			}
		})
	}
}
