package translate

// Members are those of a request that the tables know, by what it is translated to.
func Members() map[string][]string {
	all := map[string][]string{}
	for name, t := range map[string]table{"ToMessages": chatRequest, "ToChat": messagesRequest} {
		for _, r := range t {
			all[name] = append(all[name], r.member)
		}
	}
	return all
}
