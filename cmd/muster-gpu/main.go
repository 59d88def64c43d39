// Command muster-gpu is the only program of muster that loads NVML. It answers the line protocol of shim/gpu on stdin
// and stdout, and ends with its stdin: with the agent that started it. It is dynamically linked, as NVML is a shared
// library; muster itself is not.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/muster-agent/muster/cmd/muster-gpu/serve"
)

const usage = `muster-gpu answers muster's questions about NVIDIA GPUs: one JSON object per line on stdin and stdout.
muster starts it; put it beside muster. By hand:

  echo '{"id":1,"op":"inventory"}' | muster-gpu

Operations: hello, inventory, health, processes, events, quit. Exit status: 0 in order, 64 usage, 69 no driver.
`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, in io.Reader, out, words io.Writer) int {
	if len(args) > 0 {
		if args[0] == "--help" || args[0] == "-h" {
			fmt.Fprint(out, usage)
			return 0
		}
		fmt.Fprintf(words, "muster-gpu: no argument %s is known; --help says more\n", args[0])
		return 64
	}
	// A launcher's TERM goes to all processes: the agent still needs answers while it stops, and ends this by itself.
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP)
	if err := serve.Serve(nvml.New(), in, out); err != nil {
		fmt.Fprintln(words, "muster-gpu:", err)
		return 69
	}
	return 0
}
