// Package mask keeps secret values out of the texts that muster writes.
//
// A value is secret by its name (PASSWORD, TOKEN, KEY and the like, one list, in doc/manual.md), or because it was
// given as a secret. A Set knows the values and replaces them wherever they appear: in the agent's log, in the causes
// that status, events.jsonl and the registry have, in what `plan` and `explain` print. Arguments overwrites
// them in this process's command line, which every user of the host may read.
package mask
