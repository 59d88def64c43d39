package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/muster-agent/muster/cmd/internal/console"
	"github.com/muster-agent/muster/cmd/internal/flags"
	"github.com/muster-agent/muster/packages/sign"
	"github.com/muster-agent/muster/shim/exit"
)

// passwordVariable names a file with the password of a key: for machines that sign.
const passwordVariable = "MUSTER_SIGN_PASSWORD_FILE"

// passwordFlags say where a key's password comes from: never from the command line, which everybody on the host sees.
type passwordFlags struct{ file string }

func (f *passwordFlags) register(set flags.Set) {
	set.StringVar(&f.file, "password-file", "",
		"`FILE` with the key's password (default: "+passwordVariable+", else ask)")
}

type packageSignFlags struct {
	key      string
	comment  string
	password passwordFlags
}

func newPackageSign(s console.Streams) *cobra.Command {
	f := packageSignFlags{}
	cmd := &cobra.Command{
		Use: "sign FILE --key KEY", Short: "Sign a package: FILE.minisig beside it", Args: exactly("FILE"),
		Long: `Writes FILE.minisig, in minisign's format (prehashed), and prints its path. KEY is a secret key,
made by muster package keygen or by minisign. The comment is signed with the file; its default is the
time and the name of the file.`,
		Example: "  muster package sign myapp-1.0.0.zip --key ~/keys/release.key \\\n      --comment 'myapp 1.0.0'",
		RunE:    func(_ *cobra.Command, args []string) error { return f.sign(s, args[0]) },
	}
	set := cmd.Flags()
	set.StringVar(&f.key, "key", "", "`FILE` of the secret key")
	set.StringVar(&f.comment, "comment", "", "the trusted comment, one line")
	f.password.register(set)
	return cmd
}

func (f *packageSignFlags) sign(s console.Streams, file string) error {
	if f.key == "" {
		return exit.Usagef("package sign: --key is missing; muster package keygen makes one")
	}
	if strings.ContainsAny(f.comment, "\r\n") {
		return exit.Usagef("package sign: --comment: got more than one line")
	}
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return exit.With(exit.Definition, errors.Join(fmt.Errorf("package sign %s: want a file: muster package build "+
			"makes one", file), err))
	}
	key, err := sign.OpenSecretKey(f.key, func() (string, error) {
		return f.password.read(s, "Password of "+f.key+": ")
	})
	if err != nil {
		return exit.Default(exit.Definition, err)
	}
	path, err := sign.Sign(file, key, f.comment)
	if err != nil {
		return exit.With(exit.Definition, err)
	}
	fmt.Fprintln(s.Out, path)
	return nil
}

type packageKeygenFlags struct {
	password   passwordFlags
	noPassword bool
}

func newPackageKeygen(s console.Streams) *cobra.Command {
	f := packageKeygenFlags{}
	cmd := &cobra.Command{
		Use: "keygen PREFIX", Short: "Make a pair of keys: PREFIX.key signs, PREFIX.pub verifies",
		Args: exactly("PREFIX"),
		Long: `Writes PREFIX.key, encrypted with a password and readable by its owner alone, and PREFIX.pub, and
prints the public key in the form for a policy file. Both are in minisign's format. Existing files are
never replaced.`,
		Example: "  muster package keygen ~/keys/release",
		RunE:    func(_ *cobra.Command, args []string) error { return f.generate(s, args[0]) },
	}
	f.password.register(cmd.Flags())
	cmd.Flags().BoolVar(&f.noPassword, "no-password", false,
		"do not encrypt PREFIX.key: everybody who can read it can sign")
	return cmd
}

func (f *packageKeygenFlags) generate(s console.Streams, prefix string) error {
	password := ""
	if !f.noPassword {
		var err error
		if password, err = f.password.choose(s, "Password for "+prefix+".key: "); err != nil {
			return err
		}
	}
	key, err := sign.Generate(prefix, password)
	if errors.Is(err, fs.ErrExist) {
		return exit.With(exit.Usage, err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(s.Out, key)
	return nil
}

// choose reads a new password; one that is typed is typed twice.
func (f *passwordFlags) choose(s console.Streams, prompt string) (string, error) {
	password, err := f.read(s, prompt)
	if err != nil {
		return "", err
	}
	if password == "" {
		return "", exit.Usagef("package keygen: got an empty password; --no-password leaves the key unencrypted")
	}
	if f.path() == "" {
		again, err := f.read(s, "The same again: ")
		if err != nil {
			return "", err
		}
		if again != password {
			return "", exit.Usagef("package keygen: got two different passwords")
		}
	}
	return password, nil
}

func (f *passwordFlags) path() string {
	if f.file != "" {
		return f.file
	}
	return os.Getenv(passwordVariable)
}

// read reads the password: the first line of the file, or what is typed.
func (f *passwordFlags) read(s console.Streams, prompt string) (string, error) {
	path := f.path()
	if path == "" {
		return askPassword(s, prompt)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", exit.With(exit.Usage, fmt.Errorf("password: %w", err))
	}
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSuffix(line, "\r"), nil
}

// askPassword asks on a terminal without echo. An interrupt leaves the terminal as it was.
func askPassword(s console.Streams, prompt string) (string, error) {
	terminal, ok := s.In.(*os.File)
	if !ok || !term.IsTerminal(int(terminal.Fd())) {
		return "", exit.Usagef("password: stdin is no terminal; give --password-file or %s", passwordVariable)
	}
	fd := int(terminal.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return "", fmt.Errorf("password: %w", err)
	}
	heard := make(chan os.Signal, 1)
	signal.Notify(heard, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(heard)
	type answer struct {
		text []byte
		err  error
	}
	typed := make(chan answer, 1)
	fmt.Fprint(s.Err, prompt)
	defer fmt.Fprintln(s.Err)
	go func() { // after an interrupt it waits for a line until the process ends, which it does
		text, err := term.ReadPassword(fd)
		typed <- answer{text, err}
	}()
	select {
	case got := <-typed:
		if got.err != nil && !errors.Is(got.err, io.EOF) {
			return "", fmt.Errorf("password: %w", got.err)
		}
		return string(got.text), nil
	case caught := <-heard:
		number, _ := caught.(syscall.Signal)
		return "", errors.Join(exit.Silent{Code: 128 + int(number)}, term.Restore(fd, before))
	}
}
