package registry

// Packed is a roster as the registry keeps it: gzip, cut in chunks, named by content.
type Packed struct {
	Ref    RosterRef
	Chunks [][]byte // gzip of the canonical JSON, cut at ChunkSize
	JSON   []byte   // the roster file's bytes
}
