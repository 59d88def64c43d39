package registry

// ClusterSpec lists the addresses of every component by index. It depends on the roster's content
// only, not on who joined when, nor on the order of the rows. An index without a row has "".
func ClusterSpec(r Roster) map[string][]string {
	spec := make(map[string][]string)
	for _, row := range r.Rows {
		list := spec[row.Component]
		for len(list) <= row.Index {
			list = append(list, "")
		}
		list[row.Index] = row.Addr
		spec[row.Component] = list
	}
	return spec
}
