package frameworks

import (
	"cmp"
	"strings"

	"github.com/muster-agent/muster/registry"
	"github.com/muster-agent/muster/shim/plan"
)

// noGRPCProxy and its neighbours are variables of gRPC's core (doc/environment_variables.md of its sources). A proxy in
// one of the first three is used for every address except those in the fourth, or in no_proxy if the fourth is not set.
// Capital letters are not read.
const noGRPCProxy = "no_grpc_proxy"

func grpcProxies() []string { return []string{"grpc_proxy", "https_proxy", "http_proxy"} }

// pastProxy makes gRPC reach the members directly if the process uses a proxy: a company's proxy does not reach the
// gang's ports, and TensorFlow would wait for ever. A definition that sets no_grpc_proxy decides itself.
func pastProxy(proc plan.Process, members []registry.Row) map[string]string {
	told := func(name string) string { return cmp.Or(proc.Env[name], proc.Inherited[name]) }
	proxy := ""
	for _, name := range grpcProxies() {
		proxy = cmp.Or(proxy, told(name))
	}
	if proxy == "" || told(noGRPCProxy) != "" {
		return nil
	}
	hosts := plan.Hosts(members)
	if others := told("no_proxy"); others != "" {
		hosts = append([]string{others}, hosts...)
	}
	return map[string]string{noGRPCProxy: strings.Join(hosts, ",")}
}
