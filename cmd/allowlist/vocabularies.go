package main

import (
	"path/filepath"
	"strings"

	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/table"
	"github.com/otelcol-ml/otelcol-ml/internal/mlattr/vocabulary"
)

// secrets adds the keys that the vocabularies read as users' names.
func secrets(add func(key, form string)) {
	for _, client := range vocabulary.Tables() {
		for _, aliases := range [][]table.Alias{client.Resource, client.Span, client.Point} {
			for i := range aliases {
				if aliases[i].Kind == table.KindSecret {
					add(aliases[i].Source, removed)
				}
			}
		}
	}
}

// vocabularies adds the canonical attributes and their aliases in the clients'
// vocabularies.
func vocabularies(add func(key, form string)) {
	for _, attribute := range vocabulary.Attributes() {
		// Those that end in a dot begin the keys of numbers, which need none.
		if !strings.HasSuffix(attribute.Name, ".") {
			add(attribute.Name, formOf(attribute.Name))
		}
	}
	for _, client := range vocabulary.Tables() {
		for _, aliases := range [][]table.Alias{client.Resource, client.Span, client.Point} {
			for i := range aliases {
				if aliases[i].Reads == "json_model" {
					// The parameters of a request, of which one is read, have stop words and tools.
					continue
				}
				form := formOf(aliases[i].Source)
				if aliases[i].Kind == table.KindDevice {
					form = label
				}
				add(aliases[i].Source, form)
			}
		}
	}
}

// wordsOf merges the words written by hand with the names of spans and events
// in the vocabularies, and with the values of operation enumerations.
func wordsOf(lists string) (map[string]bool, error) {
	words := map[string]bool{}
	byHand, err := readList(filepath.Join(lists, "words.txt"))
	if err != nil {
		return nil, err
	}
	for _, word := range byHand {
		words[word] = true
	}
	for _, client := range vocabulary.Tables() {
		for i := range client.Names {
			switch rule := &client.Names[i]; rule.Match {
			case table.Exact:
				words[rule.Text] = true
			case table.Numbered:
				words[rule.Text+"#"] = true
			default:
			}
			if operation := client.Names[i].Operation; operation != "" {
				words[operation] = true
			}
		}
		for _, event := range client.FirstTokens {
			words[event.Event] = true
		}
	}
	return words, nil
}
