// Package wait waits for a condition or a time, and ends early with its context.
//
// It starts no goroutine and owns nothing. The rooms that poll or pause call it.
package wait
