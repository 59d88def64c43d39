// Package oneline makes an app package of a command line: `muster run -n 3 -- python train.py`.
//
// The flags and the words behind `--` come in, the package goes out, in a folder that its maker removes. It reads the
// program's files of this machine and copies those that the command names, and the modules beside them that they
// import; what it brings and what it guesses is printed. The definition itself is appdef/program's.
package oneline
