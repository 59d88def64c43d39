package samples

import "slices"

// unknown is the value of what could not be read.
const unknown = -1

// sample is what an instance used at one moment, or on the average of several.
type sample struct {
	At     int64 // seconds of Unix time; of an average the last
	Memory int64 // bytes, as the limit counts them
	Cores  float64
	GPUs   []GPU
}

// GPU is one granted device in a sample.
type GPU struct {
	ID            string
	Use           float64 // percent of the time in which it worked
	Memory, Total int64   // bytes
}

// level is samples of one distance in time.
type level struct {
	keep  int // so many stay
	merge int // so many of the oldest become one of the next level; 0: they are dropped
	all   []sample
}

// ring keeps samples, the older the sparser. The zero value is not usable: see usualRing.
type ring struct{ levels []level }

// mostPoints bounds a ring.
const mostPoints = 2000

// usualRing keeps an hour of samples that are five seconds apart, then the averages of minutes for eleven hours, then
// those of ten minutes for four days.
func usualRing() *ring {
	return newRing(level{keep: 720, merge: 12}, level{keep: 660, merge: 10}, level{keep: 590})
}

func newRing(levels ...level) *ring { return &ring{levels: levels} }

// Add takes the newest sample.
func (r *ring) add(s sample) { r.addTo(0, s) }

func (r *ring) addTo(n int, s sample) {
	l := &r.levels[n]
	l.all = append(l.all, s)
	if len(l.all) < l.keep+max(l.merge, 1) {
		return
	}
	if l.merge > 0 {
		r.addTo(n+1, average(l.all[:l.merge]))
	}
	l.all = append(l.all[:0], l.all[max(l.merge, 1):]...)
}

// after are the samples later than a moment, the oldest first.
func (r *ring) after(since int64) []sample {
	var all []sample
	for _, l := range slices.Backward(r.levels) {
		for _, s := range l.all {
			if s.At > since {
				all = append(all, s)
			}
		}
	}
	return all
}

// average is the mean of what is known of each value.
func average(all []sample) sample {
	last := all[len(all)-1]
	var memory, cores mean
	use, held := make([]mean, len(last.GPUs)), make([]mean, len(last.GPUs))
	for _, s := range all {
		memory.add(float64(s.Memory))
		cores.add(s.Cores)
		for i, g := range last.GPUs {
			if i < len(s.GPUs) && s.GPUs[i].ID == g.ID {
				use[i].add(s.GPUs[i].Use)
				held[i].add(float64(s.GPUs[i].Memory))
			}
		}
	}
	out := sample{At: last.At, Memory: int64(memory.value()), Cores: cores.value()}
	for i, g := range last.GPUs {
		out.GPUs = append(out.GPUs, GPU{ID: g.ID, Use: use[i].value(), Memory: int64(held[i].value()), Total: g.Total})
	}
	return out
}

// mean of the values that are known.
type mean struct {
	sum float64
	n   int
}

func (m *mean) add(v float64) {
	if v >= 0 {
		m.sum += v
		m.n++
	}
}

func (m *mean) value() float64 {
	if m.n == 0 {
		return unknown
	}
	return m.sum / float64(m.n)
}
