package oneline

import "testing"

func TestMegabytes(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "0": 0, "512": 512, "512M": 512, "512MB": 512, "512MiB": 512, "2G": 2048, "2GB": 2048, "2GiB": 2048,
		"-1": -1, "M": -1, "1.5G": -1, "2T": -1, "2 G": -1, "9007199254740993G": -1,
	} {
		got, ok := megabytes(text)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("megabytes(%q): got %d, want %d", text, got, want)
		}
	}
}
