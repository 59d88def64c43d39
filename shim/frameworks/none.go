package frameworks

// none adds nothing: the program reads MUSTER_* or the roster file, or needs no cluster.
func none() (env, files map[string]string) {
	return map[string]string{}, map[string]string{}
}
