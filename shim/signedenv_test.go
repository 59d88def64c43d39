package shim

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/muster-agent/muster/shim/hadoop"
	"github.com/muster-agent/muster/shim/policy"
	"github.com/muster-agent/muster/tests/need"
)

// Whoever can rename the folder above Hadoop's configuration of root's can put another in its place.
func TestAttackHadoopConfIsReplaced(t *testing.T) {
	need.Root(t)
	const stranger = 64001
	for uid, fine := range map[int]bool{0: true, stranger: false} {
		conf := filepath.Join(t.TempDir(), "above", "conf")
		if err := errors.Join(os.MkdirAll(conf, 0o755), os.Chown(filepath.Dir(conf), uid, uid)); err != nil {
			t.Fatal(err)
		}
		o := Options{Hadoop: hadoop.Login{Conf: conf}, Policy: policy.Policy{File: "/p"}}
		if err := o.admitHadoop(); (err == nil) != fine {
			t.Errorf("in a folder of uid %d: got %v, want it taken: %t", uid, err, fine)
		}
	}
}
