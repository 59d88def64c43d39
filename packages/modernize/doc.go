// Package modernize shows and makes the changes that scripts of Python 2 need to run by Python 3, by 2to3: Python's own
// lib2to3 up to 3.12, or its fork fissix.
//
// The folder of an app package comes in, with the name of a Python; a diff for each file that needs changes goes out.
// The room owns one process of that Python while it asks, and nothing of the package is run.
//
// It promises that only Write changes files: each one completely or not at all, with the mode that it had. Links are
// named and left alone. Caller: `muster package modernize`.
package modernize
