package plan

import "testing"

func TestLaunchesItself(t *testing.T) {
	for text, want := range map[string]bool{
		"mpirun -np 4 ./a":                    true,
		"exec mpiexec ./a":                    true,
		"  /usr/local/openmpi/bin/mpirun ./a": true,
		"horovodrun -np 2 python x.py":        true,
		"orterun ./a":                         true,
		"python train.py --with mpirun":       false,
		"mpirunner ./a":                       false,
		"":                                    false,
		"exec":                                false,
	} {
		if got := launchesItself(text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
}
