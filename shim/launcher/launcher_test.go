package launcher

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChooseHost(t *testing.T) {
	named := func(name string, is ...string) HostChoices {
		return HostChoices{Launcher: name, LauncherFrom: "NM_HOST", LauncherIs: is, Source: "127.0.0.1", DefaultRoute: "10.0.0.3"}
	}
	tests := []struct {
		name string
		in   HostChoices
		want string // host, origin, why the launcher's word was not taken
	}{
		{"flag first", HostChoices{Flag: "h", Launcher: "l", LauncherIs: []string{"10.0.0.9"}, Source: "10.0.0.1"}, "h, --host, "},
		{"a person may say loopback", HostChoices{Flag: "127.0.0.1"}, "127.0.0.1, --host, "},
		{"launcher", named("l", "10.0.0.9"), "l, NM_HOST, "},
		{"launcher's address", named("10.0.0.9", "10.0.0.9"), "10.0.0.9, NM_HOST, "},
		{"a name with one address for others", named("l", "127.0.1.1", "10.0.0.9"), "l, NM_HOST, "},
		{"a name of the launcher's alone", named("node7"), `10.0.0.3, default route, NM_HOST is "node7", a name that cannot be looked up here`},
		{"a loopback name", named("localhost", "::1", "127.0.0.1"), `10.0.0.3, default route, NM_HOST is "localhost", which is ::1 and 127.0.0.1, this host alone`},
		{"the host's own name, as Debian has it", named("c1", "127.0.1.1"), `10.0.0.3, default route, NM_HOST is "c1", which is 127.0.1.1, this host alone`},
		{"route", HostChoices{Source: "10.0.0.1", ConsulAgent: "10.0.0.2"}, "10.0.0.1, route to the registry, "},
		{"route is loopback", HostChoices{Source: "127.0.0.1", ConsulAgent: "10.0.0.2"}, "10.0.0.2, local Consul agent, "},
		{"v6 loopback", HostChoices{Source: "::1", ConsulAgent: "0.0.0.0", DefaultRoute: "10.0.0.3"}, "10.0.0.3, default route, "},
		{"embedded stays on the machine", HostChoices{DefaultRoute: "10.0.0.3", Loopback: true}, "127.0.0.1, embedded registry, "},
		{"nothing", HostChoices{Source: "127.0.0.1"}, "error: " + errNoHost.Error()},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			host, err := ChooseHost(tt.in)
			got := host.Address + ", " + host.Origin + ", " + host.Passed
			if err != nil {
				got = "error: " + err.Error()
			}
			if got != tt.want {
				t.Errorf("ChooseHost = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestInherit(t *testing.T) {
	environ := []string{
		"PATH=/bin", "HOME=/root", "LC_ALL=C", "PYTHONPATH=/p", "PYTHON_EXE=py", "CONDA_PREFIX=/c", "JAVA_HOME=/j",
		"HADOOP_CONF_DIR=/h", "KRB5CCNAME=/k", "CUDA_HOME=/cu", "NCCL_DEBUG=INFO", "OMP_NUM_THREADS=2",
		"http_proxy=p", "HTTPS_PROXY=q", "AWS_SECRET=s", "TF_CONFIG=old", "MUSTER_INDEX=3", "MUSTER_AGENT_HOST=h",
		"MUSTER_proxy=x", "PATHS=no", "EMPTY", "=x", "KEEP=a=b", "TZ=",
	}
	got := Inherit(environ, []string{"KEEP", "MISSING", "SET=v=w", "MUSTER_INDEX", "MUSTER_ROLE=ps", "TERM=dumb"})
	want := map[string]string{
		"PATH": "/bin", "HOME": "/root", "LC_ALL": "C", "PYTHONPATH": "/p", "PYTHON_EXE": "py", "CONDA_PREFIX": "/c",
		"JAVA_HOME": "/j", "HADOOP_CONF_DIR": "/h", "KRB5CCNAME": "/k", "CUDA_HOME": "/cu", "NCCL_DEBUG": "INFO",
		"OMP_NUM_THREADS": "2", "http_proxy": "p", "HTTPS_PROXY": "q", "TZ": "", "KEEP": "a=b", "SET": "v=w", "TERM": "dumb",
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("Inherit (-got +want):\n%s", diff)
	}
	inImage := map[string]string{
		"LC_ALL": "C", "NCCL_DEBUG": "INFO", "OMP_NUM_THREADS": "2", "http_proxy": "p", "HTTPS_PROXY": "q", "TZ": "", "PATH": "/mine",
	}
	if diff := cmp.Diff(InheritIntoImage(environ, []string{"PATH=/mine"}), inImage); diff != "" {
		t.Errorf("InheritIntoImage (-got +want):\n%s", diff)
	}
	if got := Inherit(nil, nil); got == nil || len(got) != 0 {
		t.Errorf("Inherit of nothing = %v, want an empty map", got)
	}
}
