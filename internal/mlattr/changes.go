package mlattr

// Secret reports whether the values of a kind of change may have content, so that
// only keyed hashes of them may be kept.
func Secret(change string) bool {
	return change == ChangePrompt || change == ChangeTools || change == ChangeSettings
}
