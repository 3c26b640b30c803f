package store

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// groupFile is the name of a group's summary in its folder.
const groupFile = "group.json"

// schema is the version of group.json. A change that older
// collectors misread raises it; a new field does not.
const schema = 1

// backupSuffix ends the name of a file that could not be read.
const backupSuffix = ".backup"

// tmpPrefix begins the name of everything that is not finished.
const tmpPrefix = ".tmp-"

const timeForm = "20060102T150405Z"

var (
	groupName    = regexp.MustCompile(`^[0-9a-f]{16}$`)
	artifactName = regexp.MustCompile(`^[0-9]{8}T[0-9]{6}Z-[0-9a-f]{32}-[0-9a-f]{16}$`)
)

// ArtifactName returns the name of an artifact's folder. at is the
// collector's time; the ids must be hex.
func ArtifactName(at time.Time, traceID, spanID string) string {
	return strings.Join([]string{at.UTC().Format(timeForm), traceID, spanID}, "-")
}

// checkNames returns an error if an artifact would have another place than the layout has.
func checkNames(fingerprint, name string) error {
	if !groupName.MatchString(fingerprint) || !artifactName.MatchString(name) {
		return fmt.Errorf("%q/%q is no name of the layout", fingerprint, name)
	}
	return nil
}

func artifactTime(name string) time.Time {
	stamp, _, _ := strings.Cut(name, "-")
	t, _ := time.Parse(timeForm, stamp)
	return t
}
