package dashboards

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Dashboard is what is read of a dashboard's file.
type Dashboard struct {
	// Name is that of the file, without its ending.
	Name        string `json:"-"`
	Panels      []Panel
	Templating  struct{ List []Variable }
	Annotations struct{ List []Annotation }
}

// Panel is a panel, or the title of a row.
type Panel struct {
	Title           string
	Targets         []Target
	Transformations []Transformation
	FieldConfig     struct {
		Defaults  Field
		Overrides []Override
	}
}

// Target is a query.
type Target struct {
	Expr     string
	RefID    string `json:"refId"`
	Instant  bool
	Exemplar bool
}

// Transformation changes what the queries gave.
type Transformation struct {
	ID      string
	Options struct {
		RenameByName map[string]string
	}
}

// Field is what is read of how values are shown.
type Field struct {
	Links []Link
}

// Link leads from a value to where more is known about it.
type Link struct{ Title, URL string }

// Override is what is different for the fields of one name.
type Override struct {
	Matcher    struct{ ID, Options string }
	Properties []struct {
		ID    string
		Value json.RawMessage
	}
}

// Variable is a choice above the panels.
type Variable struct {
	Name     string
	AllValue string
	Query    struct{ Query string }
}

// Annotation is a mark in all graphs.
type Annotation struct {
	Name string
	Expr string
}

// Load reads all dashboards of a folder, by their names.
func Load(folder string) ([]Dashboard, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no dashboards", folder)
	}
	slices.Sort(files)
	var all []Dashboard
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // a file of the folder that was named
		if err != nil {
			return nil, err
		}
		board := Dashboard{Name: strings.TrimSuffix(filepath.Base(file), ".json")}
		if err := json.Unmarshal(text, &board); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, board)
	}
	return all, nil
}

// LinksOf returns the links of the values of one name: those of the panel, or
// those that override them.
func (p Panel) LinksOf(name string) ([]Link, error) {
	links := p.FieldConfig.Defaults.Links
	for _, override := range p.FieldConfig.Overrides {
		if override.Matcher.ID != "byName" || override.Matcher.Options != name {
			continue
		}
		for _, property := range override.Properties {
			if property.ID != "links" {
				continue
			}
			links = nil
			if err := json.Unmarshal(property.Value, &links); err != nil {
				return nil, fmt.Errorf("%s: links of %s: %w", p.Title, name, err)
			}
		}
	}
	return links, nil
}
