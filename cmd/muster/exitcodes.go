package main

import "github.com/spf13/cobra"

const exitCodesText = `What the exit code of an agent, and of muster run, says about the job:

  verdict                          agent that failed first  others  muster run
  succeeded                        0                        0       0
  app-error, out-of-memory         the process's own code,  93      as the agent
                                   128+n after signal n;            that failed
                                   1 when that would be 0           first
  host-lost, gpu-fault, preempted  75                       75      75
  network, data, image             69                       69      69
  timeout                          76                       76      76
  definition                       65                       65      65
  not-permitted                    77                       77      77
  muster                           70                       70      70
  stopped                          0                        0       0; by Ctrl-C
                                                                    130

Codes that precede any verdict:

  64   the command line is wrong: an unknown flag, verb, component, app or instance
  65   the definition, the package or its signature is wrong, or differs from the one that the app runs
  69   the registry, or the server of the package, cannot be reached
  75   the index, or the app, is held by another agent that lives
  76   the barrier was not reached in time and nobody was left to say so
  77   not permitted: the token, a folder, the host, its policy
  93   the job failed, but not here: the exit code of the agent that failed first says more
  128+n  signal n ended the agent in good order: the run is interrupted and resumes when it is launched again

75 asks a resource manager to try again, elsewhere if it can. 64, 65 and 77 will not change by
trying again. --exit-code-map CODE|CLASS=CODE,… of muster agent translates, last of all, for a
launcher that speaks otherwise; exit.json in the instance's log folder has both codes.

muster submit --wait and muster status --wait end as muster run does, with 143 for a run that was
interrupted, and submit with 1 where no agent has joined.

The verbs that ask (ps, status, logs, stop, signal, forget, doctor) end with 0 when they did what
was asked, with 1 when they could not, and with the codes above for the reasons named there.
muster slider exists and list NAME end with 255 when the answer is no, as Slider's client does.
muster validate ends with 65 when the definition has errors, 0 when it has warnings only.
`

// newExitCodes is the help topic: muster help exit-codes.
func newExitCodes() *cobra.Command {
	return &cobra.Command{Use: "exit-codes", Short: "The meaning of each exit code", Long: exitCodesText}
}
