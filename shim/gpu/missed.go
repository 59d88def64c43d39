package gpu

import "context"

// lastSeen is what the devices were like when they were last looked at, by index.
type lastSeen struct {
	vitals map[int]Vitals
	uuids  map[int]string
}

// remember keeps what the devices were like when they were last looked at.
func (h *Helper) remember(inv Inventory, now []Vitals) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = lastSeen{vitals: map[int]Vitals{}, uuids: map[int]string{}}
	for _, d := range inv.Devices {
		h.seen.uuids[d.Index] = d.UUID
	}
	for _, v := range now {
		h.seen.vitals[v.Index] = v
	}
}

// catchUp reports what happened to the devices while no helper watched. A GPU that falls off the bus often takes the
// helper with it, and its Xid is lost.
func (h *Helper) catchUp(ctx context.Context, c *conn) error {
	reply, err := c.ask(ctx, OpHealth)
	if err != nil {
		return err
	}
	var events []Event
	h.mu.Lock()
	for index, before := range h.seen.vitals {
		now := vitalsOf(h.seen.uuids[index], index, reply.Vitals)
		events = append(events, missed(h.seen.uuids[index], before, now)...)
		h.seen.vitals[index] = now
	}
	h.mu.Unlock()
	for _, e := range events {
		h.emit(e)
	}
	return nil
}

// vitalsOf finds a device by its UUID: numbers may have moved up. One that is not there is lost.
func vitalsOf(uuid string, index int, all []Vitals) Vitals {
	for _, v := range all {
		if v.UUID == uuid && uuid != "" {
			v.Index = index // as everybody here knows it
			return v
		}
	}
	return Vitals{Index: index, UUID: uuid, Lost: true}
}

// missed are the events between two looks at a device.
func missed(uuid string, before, now Vitals) []Event {
	var out []Event
	add := func(happened bool, e Event) {
		if happened {
			e.Device, e.Index = uuid, now.Index
			out = append(out, e)
		}
	}
	add(now.Lost && !before.Lost, Event{Kind: EventUnavailable, Text: "the GPU is lost"})
	add(now.ResetRequired && !before.ResetRequired, Event{Kind: EventUnavailable, Text: "the GPU must be reset"})
	add(now.Recovery != before.Recovery && !now.Lost, Event{Kind: EventRecovery, Recovery: now.Recovery})
	add(now.DoubleBitErrors > before.DoubleBitErrors, Event{Kind: EventECC})
	return out
}
