// Package progress reads how far a program is from what it prints: from lines that report it, else from the bars of
// Keras and tqdm.
//
// Reader takes the program's streams and holds one number; it is safe for concurrent use. A report wins over every bar
// that comes later. Memory is bounded: of a line the beginning counts.
//
// Callers: the agent (shim), and what leaves reports out of the last output of a process (shim/tail, muster run).
package progress
