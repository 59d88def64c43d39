package progress

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestReader(t *testing.T) {
	const none = "none"
	for name, c := range map[string]struct{ output, want string }{
		"nothing":                          {"", none},
		"HBox's words":                     {"reporter progress:0.20\n", "0.2"},
		"with blanks":                      {"  reporter progress: 0.5 \r\n", "0.5"},
		"words before them":                {"rank 0 reporter progress:0.3\n", "0.3"},
		"a second colon":                   {"12:30 reporter progress:0.3\n", none},
		"the manual's key":                 {"report:progress:0.42\n", "0.42"},
		"the key within a line":            {"a report:progress:0.42\n", none},
		"the last one":                     {"report:progress:0.1\nreporter progress:0.2\n", "0.2"},
		"too much":                         {"reporter progress:1.5\n", none},
		"no number":                        {"reporter progress:NaN\nreport:progress:x\n", none},
		"no end of a line":                 {"report:progress:0.42", none},
		"a report wins over later bars":    {"report:progress:0.1\n 90%|█████████ | 9/10 [00:01<00:00]\n", "0.1"},
		"a report wins over earlier bars":  {" 90%|█████████ | 9/10 [00:01<00:00]\nreport:progress:0.1\n", "0.1"},
		"Keras: an epoch begins":           {"Epoch 3/10\n", "0.2"},
		"Keras: steps":                     {"Epoch 3/10\n\r 120/480 [=====>......] - ETA: 3s\r", "0.225"},
		"Keras: drawn with backspaces":     {"Epoch 1/2\n  1/4 [=>...]\b\b\b\b\b  2/4 [==>..]\b\b", "0.25"},
		"Keras 3, in colours":              {"Epoch 2/2\n\x1b[1m 50/100\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m━━━━\x1b[0m 1s\n", "0.75"},
		"Keras without a bar":              {"Epoch 2/4\n469/469 - 2s - loss: 0.2\n", "0.5"},
		"Keras: a validation in the epoch": {"Epoch 1/2\n4/4 [====]\n1/4 [=>..]\n", "0.5"},
		"Keras: the end":                   {"Epoch 1/1\n4/4 [====]\n", "1"},
		"steps alone":                      {"1/4 [=>..]\n", "0.25"},
		"tqdm":                             {"\r 45%|████▌     | 45/100 [00:01<00:01, 30.1it/s]\r", "0.45"},
		"tqdm in ASCII, with words":        {"train:  45%|####5     | 45/100 [00:01<00:01, 30.1it/s]\r", "0.45"},
		"tqdm in bytes":                    {"  7%|▋         | 1.2M/17.0M [00:01<00:10, 1.5MB/s]\r", "0.07"},
		"tqdm's words name the epoch":      {"Epoch 2/4: 50%|█████     | 5/10 [00:01<00:01]\r", "0.375"},
		"a path is no step":                {"12/30 files\n3/4\nread 5/6 [=>\n", none},
		"a percentage is no bar":           {"45% of 100 done\ndisk 45%|x\n", none},
		"a date is no step":                {"01/02 - 2024\n", none},
		"more steps than there are":        {"5/4 [====]\n", none},
		"of none":                          {"0/0 [====]\nEpoch 1/0\n", none},
		"epoch 0 has not begun":            {"Epoch 0/10\n", none},
		"a long line before":               {strings.Repeat("x", 10*mostLine) + "\nreport:progress:0.42\n", "0.42"},
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			var r Reader
			s := r.Stream()
			for text := c.output; text != ""; {
				n := min(size, len(text))
				if wrote, err := s.Write([]byte(text[:n])); wrote != n || err != nil {
					t.Fatalf("%s: wrote %d of %d: %v", name, wrote, n, err)
				}
				text = text[n:]
			}
			got := none
			if f := r.Fraction(); f != nil {
				got = fmt.Sprint(*f)
			}
			if got != c.want {
				t.Errorf("%s, by %d bytes: got %s, want %s", name, size, got, c.want)
			}
		}
	}
}

// TestStreams: a bar on stderr does not mix with one on stdout.
func TestStreams(t *testing.T) {
	var r Reader
	out, err := r.Stream(), r.Stream()
	fmt.Fprint(err, "Epoch 1/2\n")
	fmt.Fprint(out, " 50%|█████     | 5/10 [00:01<00:01]\r")
	fmt.Fprint(err, "1/2 [=>.]\r")
	if f := r.Fraction(); f == nil || *f != 0.25 {
		t.Errorf("got %v, want 0.25", f)
	}
}

func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"reporter progress:0.2\n", "report:progress:0.42\r\n", "Epoch 3/10\n 120/469 [==>..]\b\b", "\x1b[1m1/2\x1b[0m ━\r",
		" 45%|████ | 45/100 [00:01]\r",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var r Reader
		s := r.Stream().(*stream)
		if n, err := s.Write(b); n != len(b) || err != nil {
			t.Fatalf("wrote %d of %d: %v", n, len(b), err)
		}
		if got := r.Fraction(); got != nil && (math.IsNaN(*got) || *got < 0 || *got > 1) {
			t.Errorf("got %v, want 0 to 1", *got)
		}
		if len(s.rest) > mostLine {
			t.Errorf("%d bytes are held", len(s.rest))
		}
	})
}
