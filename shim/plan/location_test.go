package plan

import "testing"

// A path without a scheme is in the default filesystem, an absolute one from its top: one rule for a host and a folder.
func TestPathInFilesystem(t *testing.T) {
	for _, tt := range []struct{ uri, path, want string }{
		{"hdfs://nn:8020", "/tmp/data/x", "hdfs://nn:8020/tmp/data/x"},
		{"hdfs://nn:8020", "data/x", "hdfs://nn:8020/user/ann/data/x"},
		{"hdfs://nn:8020", "file:/tmp/data/x", "file:/tmp/data/x"},
		{"file:/srv/fs", "/tmp/data/x", "file:/srv/fs/tmp/data/x"},
		{"file:/srv/fs", "/tmp/{a,b}/*.csv", "file:/srv/fs/tmp/{a,b}/*.csv"},
		{"file:/srv/fs", "data/x", "file:/srv/fs/data/x"},
		{"file:/srv/fs", "/srv/fs/data/x", "/srv/fs/data/x"},
		{"file:/srv/fs", "/srv/fs", "/srv/fs"},
		{"file:/srv/fs", "/srv/fs2/x", "file:/srv/fs/srv/fs2/x"},
		{"file:/srv/fs", "/../etc/x", "file:/srv/fs/etc/x"},
		{"file:/srv/fs", "../etc/x", ""},
		{"file:/srv/fs", "file:/tmp/data/x", "file:/tmp/data/x"},
		{"file:/", "/tmp/data/x", "/tmp/data/x"},
		{DefaultStore, "/tmp/data/x", "/tmp/data/x"}, // nobody has named one
		{DefaultStore, "data/x", "file:${WORK}/store/data/x"},
		{"file:/srv/fs", "${WORK}/store/x", "${WORK}/store/x"},
		{"file:/srv/fs", "", ""},
	} {
		got, ok := inFilesystem(tt.uri, "ann", tt.path)
		if got != tt.want || ok != (tt.want != "") {
			t.Errorf("%s in %s: got %q, %t, want %q", tt.path, tt.uri, got, ok, tt.want)
		}
	}
}
