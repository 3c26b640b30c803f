package secret

import (
	"regexp"
	"slices"
	"strings"
)

// form finds a secret by what stands around it or by its parts. Group 1, where
// there is one, stays. A text that has none of the hints is not searched: most
// texts hold no secret, and some are long.
type form struct {
	rule    string
	hints   []string
	pattern *regexp.Regexp
}

const (
	// credentialList is the list of parameters behind the name of a scheme.
	credentialList = `[A-Za-z]+=(?:\\*"[^"\\\r\n]*\\*"|[^\s,"'\\]+)(?:,\s*[A-Za-z]+=(?:\\*"[^"\\\r\n]*\\*"|[^\s,"'\\]+))*`
	// userInfo is what stands before a password in a URL.
	userInfo = `://[^\s:/?#@"'<>\[]*:`
)

var forms = []form{
	{"private_key", []string{"PRIVATE KEY"}, regexp.MustCompile(`-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}(?s:.*?)(?:-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}|$)`)},
	{"private_key", []string{"PuTTY-User-Key-File-"}, regexp.MustCompile(`PuTTY-User-Key-File-[0-9](?s:.*?)(?:Private-MAC: [0-9a-f]+|$)`)},
	{"jwt", []string{"eyJ"}, regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.\.?[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*`)},
	{"authorization", []string{"Digest", "digest"}, regexp.MustCompile(`(\b[Dd]igest\s+)` + credentialList)},
	{"authorization", []string{"AWS4-"}, regexp.MustCompile(`(AWS4-[A-Z0-9-]+\s+)` + credentialList)},
	{"authorization", []string{"SharedKey"}, regexp.MustCompile(`(\bSharedKey(?:Lite)? )[\w.-]+:[A-Za-z0-9+/]{20,}=*`)},
	{"authorization", []string{"Negotiate", "NTLM"}, regexp.MustCompile(`(\b(?:Negotiate|NTLM) )[A-Za-z0-9+/]{16,}=*`)},
	{"authorization", []string{"earer", "asic", "pikey", "piKey", "EARER", "ASIC", "PIKEY"}, regexp.MustCompile(`(\b(?i:bearer|basic|apikey)\s+)(?:[A-Za-z0-9._~+/=-]{16,}|[A-Za-z._~+/=-]*(?:[0-9]|[a-z][A-Z])[A-Za-z0-9._~+/=-]{4,})`)},
	{"url_token", []string{"://"}, regexp.MustCompile(`(://)[^\s:/?#@"'<>\[]{16,}(?::[^\s/?#"'<>]*)?@`)},
	{"url_password", []string{"://"}, regexp.MustCompile(`(` + userInfo + `)(?:[^\s/?#"'<>]+|[^\s/?#@"'<>]*[^\s/?#@"'<>0-9][^\s/?#@"'<>]*[/?#][^\s@"'<>]*)@`)},
	{"url_password", []string{"@tcp(", "@unix("}, regexp.MustCompile(`(\b\w+:)[^\s@"']+@(?:tcp|unix)\(`)},
	{"signed_url", []string{"?", "&"}, regexp.MustCompile(`((?:[?&]|\\u0026)(?i:x-(?:amz|goog)-(?:signature|credential|security-token))=)[^&\s"'<>\\]+`)},
	{"signed_url", []string{"?", "&"}, regexp.MustCompile(`((?:[?&]|\\u0026)(?i:sig|signature|key|code|hmac)=)[^&\s"'<>\\]{16,}`)},
	{"webhook", []string{"hook"}, regexp.MustCompile(`(hooks\.slack\.com/[a-z]+/)[A-Za-z0-9/_-]+`)},
	{"webhook", []string{"hook"}, regexp.MustCompile(`(/(?:web)?hooks?(?:b2)?/)(?:[\w.@-]+/)*[A-Za-z0-9_-]{20,}(?:/[\w.@-]+)*`)},
	{"webhook", []string{"/with/key/"}, regexp.MustCompile(`(/with/key/)[\w-]+`)},
	{"sendgrid_token", []string{"SG."}, regexp.MustCompile(`\bSG\.[\w-]{16,}\.[\w-]{16,}`)},
	{"telegram_token", []string{":AA"}, regexp.MustCompile(`[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}`)},
	{"discord_token", []string{"."}, regexp.MustCompile(`\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}`)},
	{"azure_secret", []string{"Q~"}, regexp.MustCompile(`[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,}`)},
	{"terraform_token", []string{".atlasv1."}, regexp.MustCompile(`[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}`)},
	{"mailchimp_key", []string{"-us"}, regexp.MustCompile(`\b[0-9a-f]{32}-us[0-9]{1,2}\b`)},
	{"airtable_token", []string{"pat"}, regexp.MustCompile(`\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}`)},
	{"sql", []string{"dentified", "DENTIFIED", "assword", "ASSWORD"}, regexp.MustCompile(`((?i:\b(?:identified\s+by|password)\s+'(?:"'"')?))[^']+`)},
	{"sql", []string{" in", " IN", " like", " LIKE", "<>", "!="}, regexp.MustCompile(`((?i)\b["\[` + "`" + `a-z0-9_.]*(?:token|secret|password|passwd|pwd|api_?key|credentials?)["\]` + "`" + `]?\s*(?:<>|!=|\blike\b|\bin\s*\()\s*'(?:"'"')?)(?:[^']|'')+`)},
	{"argument", []string{"mysql", "mariadb", "sshpass"}, regexp.MustCompile(`(\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass)\b[^\n|;&]*?\s-p ?)[^\s"'<-][^\s"'<]*`)},
	{"argument", []string{"redis-cli"}, regexp.MustCompile(`(\bredis-cli\b[^\n|;&]*?\s-a ?)[^\s"'<-][^\s"'<]*`)},
	{"argument", []string{"docker", "podman", "helm"}, regexp.MustCompile(`(\b(?:docker|podman|helm)\b[^\n|;&]*?\blogin\b[^\n|;&]*?\s-p ?)[^\s"'<-][^\s"'<]*`)},
	{"argument", []string{"curl", "wget", "http"}, regexp.MustCompile(`(\b(?:curl|http)\b(?:[^\n|;&]|\\\n)*?\s(?:-u|-a|--user|--auth|--proxy-user)[ =]*["']?[^\s:"'<]+:["']?)[^\s"'<]+`)},
	{"netrc", []string{"login"}, regexp.MustCompile(`(\blogin\s+\S+\s+password\s+)[^\s<]+`)},
}

// withoutForms replaces what the forms find.
func withoutForms(text string, rules *[]string) string {
	for _, f := range forms {
		if slices.ContainsFunc(f.hints, func(h string) bool { return strings.Contains(text, h) }) {
			text = f.replace(text, rules)
		}
	}
	return text
}

func (f *form) replace(text string, rules *[]string) string {
	w := writer{text: text, rules: rules}
	for _, at := range f.pattern.FindAllStringSubmatchIndex(text, -1) {
		from, to := at[0], at[1]
		if len(at) > 2 && at[3] >= 0 {
			from = at[3]
		}
		// What stands behind a password stays readable.
		if text[to-1] == '@' {
			to--
		}
		if !isMark(text[from:to]) {
			w.replace(from, to, f.rule)
		}
	}
	return w.String()
}
