package content

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
)

// position is a place where a secret stands in telemetry.
type position struct {
	name string
	// put returns the key of the attribute and its text. It returns an empty
	// text where the secret cannot stand there.
	put func(planted) (key, text string)
}

// free are the positions of a secret that is known by its form.
var free = []position{
	{"attribute", func(p planted) (string, string) { return "app.detail", p.text }},
	{"sentence", func(p planted) (string, string) {
		return "exception.message", "the request failed with " + p.text + ", and was tried again"
	}},
	{"end of a sentence", func(p planted) (string, string) { return "exception.message", "rejected: " + p.text + "." }},
	{"traceback", func(p planted) (string, string) {
		return "exception.stacktrace", "  File \"x.py\", line 3, in f\n    g()\nValueError: bad value: " + p.text + "\n"
	}},
	{"JSON", func(p planted) (string, string) {
		return "app.body", `{"a": 1, "message": ` + jsonText(p.text) + `, "n": 2}`
	}},
	{"JSON in JSON", func(p planted) (string, string) {
		return "app.body", `{"body": ` + jsonText(`{"message":`+jsonText(p.text)+`,"n":2}`) + `}`
	}},
	{"Python repr", func(p planted) (string, string) {
		return "app.args", "Request(1, message=" + pythonText(p.text) + ", items=[2])"
	}},
	{"URL query", func(p planted) (string, string) {
		return "url.full", "https://host.example/v1?n=1&q=" + url.QueryEscape(p.text) + "&m=2"
	}},
	{"shell line", func(p planted) (string, string) {
		return "process.command_line", "run.sh --name x " + shellText(p.text) + " | tee log"
	}},
	{"environment", func(p planted) (string, string) {
		return "app.env", "PATH=/usr/bin\nVALUE=" + p.text + "\nHOME=/root"
	}},
	{"arguments", func(p planted) (string, string) {
		return "process.command_args", "['run', " + pythonText(p.text) + ", '-v']"
	}},
	{"Markdown", func(p planted) (string, string) { return "app.note", "Use `" + p.text + "` here" }},
	{"base64", func(p planted) (string, string) { return "app.data", "data " + encoded("x "+p.text) + "." }},
}

// keyed are the positions of a secret that is known by its name.
var keyed = []position{
	{"attribute", func(p planted) (string, string) { return p.key, p.text }},
	{"sentence", func(p planted) (string, string) {
		return "exception.message", "the call failed with " + p.key + "=" + p.text + ", and was tried again"
	}},
	{"JSON", func(p planted) (string, string) {
		return "app.body", `reply: {"a": 1, ` + jsonText(p.key) + `: ` + jsonText(p.text) + `, "n": 2}`
	}},
	{"JSON in JSON", func(p planted) (string, string) {
		return "app.body", `{"body": ` + jsonText(`{`+jsonText(p.key)+`:`+jsonText(p.text+` "x" `+p.text)+`,"n":2}`) + `}`
	}},
	{"JSON, name and value", func(p planted) (string, string) {
		return "app.body", `[{"name": ` + jsonText(p.key) + `, "value": ` + jsonText(p.text) + `}, {"name": "n", "value": "x"}]`
	}},
	{"Python repr", func(p planted) (string, string) {
		return "app.args", "{'a': 1, " + pythonText(p.key) + ": " + pythonText("it's "+p.text) + "}"
	}},
	{"Python tuple", func(p planted) (string, string) {
		return "app.args", "[(b'host', b'x'), (b" + pythonText(p.key) + ", b" + pythonText(p.text) + ")]"
	}},
	{"Python call", func(p planted) (string, string) {
		if strings.ContainsAny(p.key, ".-") {
			return "", ""
		}
		return "code.line", "connect(host='x', " + p.key + "=" + pythonText(p.text) + ", n=1)"
	}},
	{"URL query", func(p planted) (string, string) {
		return "url.full", "https://host.example/v1?n=1&" + p.key + "=" + url.QueryEscape(p.text) + "&m=2"
	}},
	{"shell line", func(p planted) (string, string) {
		return "process.command_line", "export " + p.key + "=" + shellText(p.text+" x") + " && run"
	}},
	{"argument", func(p planted) (string, string) {
		return "process.command_line", "run --" + flagOf(p.key) + " " + p.text + " --n 3"
	}},
	{"arguments", func(p planted) (string, string) {
		return "process.command_args", "['run', '--" + flagOf(p.key) + "', " + pythonText(p.text) + ", '-v']"
	}},
	{"header", func(p planted) (string, string) {
		return "app.headers", "Host: x\r\n" + p.key + ": " + p.text + "\r\nAccept: */*"
	}},
	{"environment", func(p planted) (string, string) {
		return "app.env", "PATH=/usr/bin\n" + p.key + "=" + p.text + "\nHOME=/root"
	}},
	{"environment in JSON", func(p planted) (string, string) {
		return "app.env", jsonText("PATH=/usr/bin\n" + p.key + "=" + p.text + "\nHOME=/root")
	}},
	{"YAML", func(p planted) (string, string) { return "app.config", "a: 1\n" + p.key + ": " + p.text + "\nb: 2" }},
	{"XML", func(p planted) (string, string) {
		return "app.config", "<a><" + p.key + ">" + p.text + "</" + p.key + "></a>"
	}},
	{"base64", func(p planted) (string, string) { return "app.data", "data " + encoded(p.key+"="+p.text) + "." }},
}

// positionsOf returns where p can stand.
func positionsOf(p planted) []position {
	if p.key != "" {
		return keyed
	}
	return free
}

// flagOf writes a name as that of a flag.
func flagOf(key string) string { return strings.Join(split(nil, key), "-") }

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

func jsonText(text string) string {
	out, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(out)
}

// pythonText writes text as Python's repr does.
func pythonText(text string) string {
	quote := "'"
	if strings.Contains(text, "'") && !strings.Contains(text, `"`) {
		quote = `"`
	}
	text = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\r", `\r`, quote, `\`+quote).Replace(text)
	return quote + text + quote
}

// shellText puts text in quotes where a shell needs them.
func shellText(text string) string {
	if !strings.ContainsAny(text, " \n\"'&;()<>|") {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'"'"'`) + "'"
}
