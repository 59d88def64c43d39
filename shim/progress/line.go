package progress

import (
	"regexp"
	"strconv"
	"strings"
)

// The lines that report progress: HBox's programs write the first, and its manual has the second.
const (
	hboxWords = "reporter progress"
	reportKey = "report:progress:"
)

// Reported is the progress of a line that reports it, 0 to 1. HBox takes every line with its words, one colon and then
// a number.
func Reported(line string) (fraction float64, ok bool) {
	text, ok := strings.CutPrefix(strings.TrimSpace(line), reportKey)
	if !ok {
		head, tail, colon := strings.Cut(line, ":")
		if !colon || !strings.Contains(head, hboxWords) {
			return 0, false
		}
		text = tail
	}
	fraction, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	return fraction, err == nil && fraction >= 0 && fraction <= 1 // NaN is neither
}

// The bars of training programs: Keras' `Epoch 3/10` and `120/469 [===>...]` (its third version draws ━, and without
// a bar writes `469/469 - 2s`), and tqdm's ` 45%|████▌ | 45/100 [00:01<00:01]` after any words.
var (
	epochOf = regexp.MustCompile(`\bEpoch:? +(\d{1,9})/(\d{1,9})\b`)
	stepOf  = regexp.MustCompile(`^ *(\d{1,12})/(\d{1,12}) (?:\[[=>.]|━|- \d+m?s\b)`)
	tqdmOf  = regexp.MustCompile(`(?:^|[ :])(\d{1,3})%\|[^|]*\| *[^ /|]+/[^ /|]+ \[`)
	colours = regexp.MustCompile("\x1b\\[[0-9;]*m")
)

// bars is what the bars of a program say.
type bars struct {
	epoch, epochs float64 // 0: no epoch was named
	within        float64 // of the epoch; a second bar in it (of a validation) does not take it back
}

// read takes a line; ok: it is part of a bar.
func (b *bars) read(line string) (fraction float64, ok bool) {
	if !strings.ContainsAny(line, "/%") {
		return 0, false
	}
	line = colours.ReplaceAllString(line, "")
	if epoch, epochs, found := ratio(epochOf.FindStringSubmatch(line)); found && epoch > 0 {
		if epoch != b.epoch || epochs != b.epochs {
			*b = bars{epoch: epoch, epochs: epochs}
		}
		ok = true
	}
	done, of, found := ratio(stepOf.FindStringSubmatch(line))
	if percent := tqdmOf.FindStringSubmatch(line); percent != nil {
		done, of, found = ratio([]string{"", percent[1], "100"})
	}
	switch {
	case !found && !ok:
		return 0, false
	case b.epochs == 0:
		return done / of, true
	case found:
		b.within = max(b.within, done/of)
	}
	return (b.epoch - 1 + b.within) / b.epochs, true
}

// ratio is the first two groups of a match as a part of a whole.
func ratio(groups []string) (part, whole float64, ok bool) {
	if groups == nil {
		return 0, 0, false
	}
	part, err := strconv.ParseFloat(groups[1], 64)
	if err != nil {
		return 0, 0, false
	}
	whole, err = strconv.ParseFloat(groups[2], 64)
	return part, whole, err == nil && whole > 0 && part <= whole
}
