// Command gpuhelper stands in for muster-gpu in tests: it serves the same protocol from NVML's mock of a DGX machine
// with 8 GPUs. MUSTER_GPU_TEST_HOST names a JSON file with another machine, and with faults (nvmltest.Host).
package main

import (
	"fmt"
	"os"

	"github.com/muster-agent/muster/cmd/muster-gpu/nvmltest"
	"github.com/muster-agent/muster/cmd/muster-gpu/serve"
)

func main() {
	lib, err := nvmltest.Open()
	if err == nil {
		err = serve.Serve(lib, os.Stdin, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "gpuhelper:", err)
		os.Exit(69)
	}
}
