package submit

import (
	"slices"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef/hbox"
)

// TestCarriedOptions holds what the help of hbox-submit says of an option that has no effect on this host: a launcher
// is asked for it, or it is ignored there too.
func TestCarriedOptions(t *testing.T) {
	for _, o := range hbox.Options() {
		if !o.Idle {
			if o.Remote {
				t.Errorf("%s: marked for launchers alone, but it is not idle", o.Name)
			}
			continue
		}
		unsupported, err := new(Job).carry(hbox.Submission{Carried: map[string]string{strings.TrimPrefix(o.Name, "--"): "1"}})
		if err != nil {
			t.Errorf("%s: %v", o.Name, err)
		}
		if got := len(unsupported) == 0; got != o.Remote {
			t.Errorf("%s: reaches the job: got %t, want %t", o.Name, got, o.Remote)
		}
	}
}

// Properties that no class of the user's reads are told where the job is sent from, and not first on its hosts.
func TestCarryTellsUnreadProperties(t *testing.T) {
	for format, told := range map[string]bool{"TextInputFormat": true, "org.apache.hadoop.mapred.TextInputFormat": true, "lab.Mine": false} {
		words := []string{"--input", "/in#data", "--input-strategy", "STREAM", "--inputformat", format, "--conf", "mapreduce.x=y", "cat"}
		job, found := hbox.Parse(words, hbox.Site{})
		if len(found.Errors()) > 0 {
			t.Fatal(found)
		}
		unsupported, err := new(Job).carry(job)
		want := []string{"hbox-submit: mapreduce.x: no --inputformat or --outputformat is a class of yours, which alone would read it"}
		if err != nil || slices.Equal(unsupported, want) != told || !told && len(unsupported) > 0 {
			t.Errorf("%s: got %q, %v, told %t", format, unsupported, err, told)
		}
	}
}
