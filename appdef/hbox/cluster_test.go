package hbox_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/muster-agent/muster/appdef/hbox"
)

func TestCluster(t *testing.T) {
	site := []string{
		"safe-lycc.conf.path=/etc/lycc/yarn-site.xml,file:///etc/lycc/core-site.xml", "hpc.conf.path=/etc/hpc/",
		"two.conf.path=/etc/a/core-site.xml,/etc/b/yarn-site.xml", "other.conf.path=/etc/a/yarn-other.xml",
	}
	for _, tt := range []struct {
		name       string
		site       []string
		line, want string // a folder, or an error
		carried    string
	}{
		{"files of a folder", site, "--cluster safe-lycc true", "/etc/lycc", ""},
		{"in capitals", site, "--cluster Safe-LYCC true", "/etc/lycc", ""},
		{"a folder", site, "--cluster hpc true", "/etc/hpc", ""},
		{"by conf", site, "--conf hbox.cluster.name=hpc true", "/etc/hpc", ""},
		{"the administrator's choice", append(site, "hbox.cluster.name=hpc"), "true", "/etc/hpc", ""},
		{"the user's choice", append(site, "hbox.cluster.name=hpc"), "--cluster safe-lycc true", "/etc/lycc", ""},
		{"the user's configuration", site, "--cluster mine --conf mine.conf.path=/home/ann/conf true", "/home/ann/conf", ""},
		{"nothing is picked", site, "true", "", ""},
		{"a slip", site, "--cluster safe-lyc true", `--cluster#: got "safe-lyc", want one of hpc, other, safe-lycc, two; did you mean safe-lycc?`, ""},
		{"two folders", site, "--cluster two true", "hbox-site.xml:6#/two.conf.path: got", ""},
		{"a file that Hadoop does not read", site, "--cluster other true", "hbox-site.xml:7#/other.conf.path: got", ""},
		{"no cluster is known", nil, "--cluster safe-lycc true", "", "--cluster"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s, found := hbox.Parse(strings.Fields(tt.line), siteOf(t, tt.site...))
			got := s.HadoopConf + strings.Trim(fmt.Sprint(found), "[]")
			if tt.want == "" && got != "" || !strings.HasPrefix(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
			if carried := strings.Join(s.CarriedNames(), " "); carried != tt.carried {
				t.Errorf("carried %q, want %q", carried, tt.carried)
			}
		})
	}
}
