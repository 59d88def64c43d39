package gpu

// The line protocol of muster and muster-gpu: one JSON object per line, requests on the helper's stdin, replies on its
// stdout, words for people on its stderr. A reply carries the id of its request; requests are answered in order.
//
//	→ {"id":1,"op":"hello"}      ← {"id":1,"hello":{"protocol":1,"driver":"550.54.15",…}}
//	→ {"id":2,"op":"inventory"}  ← {"id":2,"inventory":{…}}
//	→ {"id":3,"op":"health"}     ← {"id":3,"vitals":[…]}
//	→ {"id":4,"op":"processes"}  ← {"id":4,"processes":{"GPU-…":[…]}}
//	→ {"id":5,"op":"load"}       ← {"id":5,"loads":[…]}
//	→ {"id":6,"op":"events"}     ← {"id":6}          and from then on, without an id
//	                             ← {"event":{"kind":"xid","device":"GPU-…","xid":79}}
//	→ {"id":7,"op":"quit"}       ← {"id":7}          and it ends; so it does when its stdin ends
//
// What fails is answered with {"id":…,"error":{"code":…,"text":…}}. A helper that finds no driver answers its
// first request so, with the code no-driver, and ends with exit status 69.

// Protocol is the version that both sides must speak.
const Protocol = 1

// Op is what a request asks for.
type Op string

// The operations.
const (
	OpHello     Op = "hello"
	OpInventory Op = "inventory"
	OpHealth    Op = "health"
	OpProcesses Op = "processes"
	OpLoad      Op = "load"
	OpEvents    Op = "events"
	OpQuit      Op = "quit"
)

// Codes of Problem.
const (
	CodeNoDriver  = "no-driver"  // NVML is not there or cannot be initialised
	CodeUnknownOp = "unknown-op" // an operation of another version
	CodeNVML      = "nvml"       // NVML refused
)

// Request is a line to the helper. IDs are positive.
type Request struct {
	ID int64 `json:"id"`
	Op Op    `json:"op"`
}

// Reply is a line from the helper: an answer, or an Event without an ID.
type Reply struct {
	ID        int64                `json:"id,omitempty"`
	Error     *Problem             `json:"error,omitempty"`
	Hello     *Hello               `json:"hello,omitempty"`
	Inventory *Inventory           `json:"inventory,omitempty"`
	Vitals    []Vitals             `json:"vitals,omitempty"`
	Processes map[string][]Process `json:"processes,omitempty"` // by UUID
	Loads     []Load               `json:"loads,omitempty"`
	Event     *Event               `json:"event,omitempty"`
}

// Problem is why a request was not answered.
type Problem struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

func (p *Problem) Error() string { return p.Text }

// Hello says who answers.
type Hello struct {
	Protocol int    `json:"protocol"`
	Driver   string `json:"driver"`
	NVML     string `json:"nvml"`
	CUDA     string `json:"cuda"`
}

// Vitals are a device's facts as the driver tells them; what they mean is judged on this side (judge).
type Vitals struct {
	Index int    `json:"index"`
	UUID  string `json:"uuid"` // empty when the device is lost
	// Lost says that the driver no longer reaches the device.
	Lost bool `json:"lost,omitempty"`
	// ResetRequired says that the driver refuses it until it is reset.
	ResetRequired bool `json:"reset_required,omitempty"`
	// DoubleBitErrors are uncorrectable memory errors since the driver was loaded.
	DoubleBitErrors uint64 `json:"double_bit_errors,omitempty"`
	RemapPending    bool   `json:"remap_pending,omitempty"`
	RemapFailed     bool   `json:"remap_failed,omitempty"`
	RetirePending   bool   `json:"retire_pending,omitempty"`
	// Recovery is NVIDIA's word for what the device needs: "", or gpu-reset, node-reboot, drain-p2p, …
	Recovery string `json:"recovery,omitempty"`
	// FabricPending says that the NVSwitch fabric has not taken the device up; CUDA refuses it until then.
	FabricPending bool `json:"fabric_pending,omitempty"`
}

// Load is how busy a device, or an instance of one cut by MIG, is; -1: the driver does not say.
type Load struct {
	ID    string  `json:"id"`  // its UUID
	Use   float64 `json:"use"` // percent of the last moments in which it worked
	Used  int64   `json:"used"`
	Total int64   `json:"total"` // bytes of memory
}

// Kinds of Event.
const (
	EventXid         = "xid"
	EventECC         = "ecc"         // a double-bit error
	EventUnavailable = "unavailable" // the driver gave the device up
	EventRecovery    = "recovery"    // Recovery has changed
	// EventHelper is of this side: the helper has ended and is restarted; Text says why.
	EventHelper = "helper"
)

// Event is something that happened to a device while it was watched.
type Event struct {
	Kind   string `json:"kind"`
	Device string `json:"device,omitempty"` // UUID
	Index  int    `json:"index"`
	// GPUInstance is the GPU instance of a GPU cut by MIG that it happened to; nil: the whole GPU, or not known.
	GPUInstance *int `json:"gpu_instance,omitempty"`
	Xid         int  `json:"xid,omitempty"`
	// Recovery is the action that the device needs now; "": none.
	Recovery string `json:"recovery,omitempty"`
	Text     string `json:"text,omitempty"`
}
