// Package manager moves the data of this agent's instance: it brings inputs, code and files before the start, feeds the
// process by stdin, and leaves outputs after its end.
//
// It owns the names of the run in the work folder that hold inputs and outputs, the pipes that data flows through, and
// its goroutines: uploads, interim saves, feeding, reading stdout, renewing the process's Kerberos tickets. Close ends
// and awaits them. It promises that an output gets its name once and complete, when the job's verdict is there, and
// that what an agent that was killed has left is settled by the last agent of the run. It reaches stores through
// shim/data/stores, uses the rules of shim/data, and sends the events of ended processes to the machine. The agent
// makes one and passes it the machine's effects; the process room starts its pipes.
package manager
