package hdfs

import (
	"errors"
	"strings"
	"testing"

	client "github.com/colinmarc/hdfs/v2"
)

// What a NameNode says of a file whose blocks hold something else than its bytes. Of Hadoop's own policies it says a
// number and no name, so that there is something counts.
func TestPlainBlocks(t *testing.T) {
	for field, want := range map[string]string{"": "", "fileEncryptionInfo": "in an encrypted folder", "ecPolicy": "erasure coded"} {
		var status client.FileStatus
		m := status.ProtoReflect()
		for i := range m.Descriptor().Fields().Len() {
			if f := m.Descriptor().Fields().Get(i); f.TextName() == field {
				m.Mutable(f)
			}
		}
		err := plainBlocks(&status)
		if want == "" && err != nil {
			t.Errorf("a plain file: got %v", err)
		}
		if want != "" && (!errors.Is(err, errors.ErrUnsupported) || transient(err) || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "keep it in a folder")) {
			t.Errorf("want %s: got %v", want, err)
		}
	}
}
