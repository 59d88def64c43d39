// Package program makes the definition of one program from a command line: `muster run -n 3 -- python train.py`.
//
// A Program comes in, an App goes out, which slider.Write makes a package of. The room guesses a framework by what the
// program's text imports (Guess), and names the modules of the program's own that it imports (Imports); it reads no
// file. It promises that the words of the command reach the program unchanged. Caller: cmd/internal/oneline.
package program
