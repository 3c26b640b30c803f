package mlattr

// users is what the semantic conventions name those who use a program by. It
// is no client's vocabulary and holds for every resource, span and log record.
// Where a client has a name of its own for its user, that is tried first.
//
// On metrics there is none: the user.id of a GPU's series is the owner of a
// process, and a user on each point would be a series each.
func users() Table {
	aliases := []Alias{
		{Source: "user.id", Canonical: User, Kind: KindSecret},
		{Source: "enduser.id", Canonical: User, Kind: KindSecret},
		{Source: "enduser.pseudo.id", Canonical: User, Kind: KindSecret},
	}
	return Table{
		Name:     "users",
		Title:    "Users",
		Page:     "https://github.com/open-telemetry/semantic-conventions/blob/v1.41.1/docs/registry/attributes/user.md",
		Resource: aliases,
		Span:     aliases,
	}
}
