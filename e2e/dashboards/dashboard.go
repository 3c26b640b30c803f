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
	Title       string
	Description string
	Panels      []Panel
	Templating  struct{ List []Variable }
	Annotations struct{ List []Annotation }
}

// Panel is a panel, or the title of the row below it where its Type is "row".
type Panel struct {
	ID              int
	Type            string
	Title           string
	Description     string
	GridPos         struct{ X, Y, W, H int }
	Targets         []Target
	Transformations []Transformation
	FieldConfig     struct {
		Defaults  Field
		Overrides []Override
	}
	Options Options
}

// Target is a query.
type Target struct {
	Expr         string
	LegendFormat string
	RefID        string `json:"refId"`
	Instant      bool
	Range        bool
	Exemplar     bool
}

// Transformation changes what the queries gave.
type Transformation struct {
	ID      string
	Options struct {
		ExcludeByName map[string]bool
		IndexByName   map[string]int
		RenameByName  map[string]string
	}
}

// Field is how values are shown.
type Field struct {
	Unit       string
	Decimals   *int
	Min, Max   *float64
	NoValue    string
	Thresholds *Thresholds
	Mappings   []Mapping
	Color      struct{ Mode, FixedColor string }
	Links      []Link
	Custom     Custom
}

// Custom is what a type of panel adds to it.
type Custom struct {
	FillOpacity float64
	LineWidth   float64
	Width       int
	Stacking    struct{ Mode string }
	CellOptions struct{ Type string }
}

// Link leads from a value to where more is known about it.
type Link struct{ Title, URL string }

// Thresholds are colours by value. The first step has no value.
type Thresholds struct {
	Steps []struct {
		Value *float64
		Color string
	}
}

// Mapping gives single values a text and a colour.
type Mapping struct {
	Options map[string]struct{ Text, Color string }
}

// Override is what is different for the fields of one name.
type Override struct {
	Matcher    struct{ ID, Options string }
	Properties []struct {
		ID    string
		Value json.RawMessage
	}
}

// Options are what a type of panel has of its own.
type Options struct {
	Content   string
	GraphMode string
	SortBy    []struct {
		DisplayName string
		Desc        bool
	}
	Legend struct{ Calcs []string }
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

// FieldOf returns how the values of one name are shown: the defaults of the
// panel with what overrides them.
func (p Panel) FieldOf(name string) (Field, error) {
	field := p.FieldConfig.Defaults
	for _, override := range p.FieldConfig.Overrides {
		if override.Matcher.ID != "byName" || override.Matcher.Options != name {
			continue
		}
		for _, property := range override.Properties {
			var into any
			switch property.ID {
			case "unit":
				into = &field.Unit
			case "decimals":
				field.Decimals = new(int)
				into = field.Decimals
			case "min":
				field.Min = new(float64)
				into = field.Min
			case "max":
				field.Max = new(float64)
				into = field.Max
			case "color":
				into = &field.Color
			case "thresholds":
				field.Thresholds = new(Thresholds)
				into = field.Thresholds
			case "mappings":
				field.Mappings = nil
				into = &field.Mappings
			case "custom.width":
				into = &field.Custom.Width
			case "custom.cellOptions":
				into = &field.Custom.CellOptions
			case "links":
				field.Links = nil
				into = &field.Links
			default:
				return field, fmt.Errorf("%s: an override of %s is not understood: %s", p.Title, name, property.ID)
			}
			if err := json.Unmarshal(property.Value, into); err != nil {
				return field, fmt.Errorf("%s: %s of %s: %w", p.Title, property.ID, name, err)
			}
		}
	}
	return field, nil
}
