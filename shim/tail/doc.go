// Package tail keeps and finds the end of an output: Buffer that of a stream, Parts that of a log and of the files it was
// rotated to. Callers: run (what an agent said last), logs, the agent's start and stop commands.
package tail
