// Package console is where a verb reads and writes: results go to Out, everything else to Err, as text, a table or
// JSON.
package console
