// Package verdict says in OpenPAI's words how a process ended: the row of PAI's exit tables, and the block of text that
// PAI's containers leave for their launcher. It decides nothing: the verdict is the registry's, and the user's own exit
// code stands beside the row. It refuses to know processes and files.
package verdict
