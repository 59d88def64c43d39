package hbox_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/muster-agent/muster/appdef"
	"github.com/muster-agent/muster/appdef/hbox"
	"github.com/muster-agent/muster/appdef/slider"
)

// A submission is a package without a loss: what runs here is made of one.
func TestSubmissionAsPackage(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	same := cmp.Options{meaning(), cmpopts.IgnoreMapEntries(func(key, _ string) bool { return key == "muster.dialect" }), cmpopts.IgnoreFields(appdef.App{}, "Kept")}
	for range 100 {
		args := submission(r)
		s, found := hbox.Parse(args, hbox.Site{})
		if len(found.Errors()) > 0 {
			continue
		}
		documents, unsupported := slider.Write(s.App)
		if len(unsupported) > 0 {
			t.Fatalf("%q: unsupported %q", args, unsupported)
		}
		files := fstest.MapFS{}
		for name, text := range documents {
			files[name] = &fstest.MapFile{Data: text}
		}
		back, found := slider.Load(files, slider.Options{})
		if bad := found.Errors(); len(bad) > 0 {
			t.Fatalf("%q: %v", args, bad)
		}
		if diff := cmp.Diff(s.App, back, same); diff != "" {
			t.Fatalf("%q (-submitted +loaded):\n%s", args, diff)
		}
		back.Kept = s.App.Kept // what is only kept has no place in a package, and is all that it loses
		again, unsupported := hbox.Write(back)
		if len(unsupported) > 0 {
			t.Fatalf("%q by a package: unsupported %q", args, unsupported)
		}
		if straight, _ := hbox.Write(s.App); !slices.Equal(again, straight) {
			t.Fatalf("%q by a package: got\n%q, want\n%q", args, again, straight)
		}
	}
}
