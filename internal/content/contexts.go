package content

import (
	"regexp"
	"strings"
)

// context finds a secret by its context or its parts. Group 1, if there is one, is
// kept. A text without any of the hints is not searched, because most texts
// have no secret and some are long.
type context struct {
	rule    string
	hints   []string
	pattern *regexp.Regexp
}

const (
	// schemeParameters matches the parameters after the name of a scheme.
	schemeParameters = `[A-Za-z]+=(?:\\*"[^"\\\r\n]*\\*"|[^\s,"'\\]+)(?:,\s*[A-Za-z]+=(?:\\*"[^"\\\r\n]*\\*"|[^\s,"'\\]+))*`
	// userInfo matches what precedes a password in a URL.
	userInfo = `://[^\s:/?#@"'<>\[]*:`
)

var contexts = []context{
	{"private_key", []string{"PRIVATE KEY"}, regexp.MustCompile(`-{4,5} ?BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}(?s:.*?)(?:-{4,5} ?END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)? ?-{4,5}|$)`)},
	{"private_key", []string{"PuTTY-User-Key-File-"}, regexp.MustCompile(`PuTTY-User-Key-File-[0-9](?s:.*?)(?:Private-MAC: [0-9a-f]+|$)`)},
	{"jwt", []string{"eyJ"}, regexp.MustCompile(`eyJ[A-Za-z0-9_-]{8,}\.\.?[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)*`)},
	{"authorization", []string{"Digest", "digest"}, regexp.MustCompile(`(\b[Dd]igest\s+)` + schemeParameters)},
	{"authorization", []string{"AWS4-"}, regexp.MustCompile(`(AWS4-[A-Z0-9-]+\s+)` + schemeParameters)},
	{"authorization", []string{"SharedKey"}, regexp.MustCompile(`(\bSharedKey(?:Lite)? )[\w.-]+:[A-Za-z0-9+/]{20,}=*`)},
	{"authorization", []string{"Negotiate", "NTLM"}, regexp.MustCompile(`(\b(?:Negotiate|NTLM) )[A-Za-z0-9+/]{16,}=*`)},
	{"authorization", []string{"earer", "asic", "pikey", "piKey", "EARER", "ASIC", "PIKEY"}, regexp.MustCompile(`(\b(?i:bearer|basic|apikey)\s+)(?:[A-Za-z0-9._~+/=-]{16,}|[A-Za-z._~+/=-]*(?:[0-9]|[a-z][A-Z])[A-Za-z0-9._~+/=-]{4,})`)},
	{"url_token", []string{"://"}, regexp.MustCompile(`(://)[^\s:/?#@"'<>\[]{16,}(?::[^\s/?#"'<>]*)?@`)},
	{"url_password", []string{"://"}, regexp.MustCompile(`(` + userInfo + `)(?:[^\s/?#"'<>]+|[^\s/?#@"'<>]*[^\s/?#@"'<>0-9][^\s/?#@"'<>]*[/?#][^\s@"'<>]*)@`)},
	{"url_password", []string{"@tcp(", "@unix("}, regexp.MustCompile(`(:)[^\s@"'/:]+@(?:tcp|unix)\(`)},
	{"signed_url", []string{"ignature=", "redential=", "oken=", "IGNATURE=", "REDENTIAL=", "OKEN="}, regexp.MustCompile(`((?:[?&]|\\u0026)(?i:x-(?:amz|goog)-(?:signature|credential|security-token))=)[^&\s"'<>\\]+`)},
	{"signed_url", []string{"sig=", "ignature=", "key=", "Key=", "KEY=", "code=", "hmac="}, regexp.MustCompile(`((?:[?&]|\\u0026)(?i:sig|signature|key|code|hmac)=)[^&\s"'<>\\]{16,}`)},
	{"webhook", []string{"hook"}, regexp.MustCompile(`(hooks\.slack\.com/[a-z]+/)[A-Za-z0-9/_-]+`)},
	{"webhook", []string{"hook"}, regexp.MustCompile(`(/(?:web)?hooks?(?:b2)?/)(?:[\w.@-]+/)*[A-Za-z0-9_-]{20,}(?:/[\w.@-]+)*`)},
	{"webhook", []string{"/with/key/"}, regexp.MustCompile(`(/with/key/)[\w-]+`)},
	{"sendgrid_token", []string{"SG."}, regexp.MustCompile(`\bSG\.[\w-]{16,}\.[\w-]{16,}`)},
	{"telegram_token", []string{":AA"}, regexp.MustCompile(`[0-9]{8,10}:AA[A-Za-z0-9_-]{32,}`)},
	{"discord_token", []string{".G", ".X", ".Y", ".Z"}, regexp.MustCompile(`\b[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}`)},
	{"azure_secret", []string{"Q~"}, regexp.MustCompile(`[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{30,}`)},
	{"terraform_token", []string{".atlasv1."}, regexp.MustCompile(`[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_=-]{40,}`)},
	{"mailchimp_key", []string{"-us"}, regexp.MustCompile(`\b[0-9a-f]{32}-us[0-9]{1,2}\b`)},
	{"airtable_token", []string{"pat"}, regexp.MustCompile(`pat[A-Za-z0-9]{14}\.[0-9a-f]{64}`)},
	{"sql", []string{"dentified", "DENTIFIED", "assword '", "ASSWORD '"}, regexp.MustCompile(`((?i:\b(?:identified\s+by|password)\s+'(?:"'"')?))[^']+`)},
	{"sql", []string{"('", "( '", "like '", "LIKE '", "<> '", "<>'", "!= '", "!='"}, regexp.MustCompile(`((?i:token|secret|password|passwd|pwd|api_?key|credentials?)["\]` + "`" + `]?\s*(?:<>|!=|\b(?i:like)\b|\b(?i:in)\s*\()\s*'(?:"'"')?)(?:[^']|'')+`)},
	{"argument", []string{"mysql", "mariadb", "sshpass"}, regexp.MustCompile(`(\b(?:mysql|mysqldump|mysqladmin|mariadb|sshpass)\b[^\n|;&]*?\s-p ?)[^\s"'<-][^\s"'<]*`)},
	{"argument", []string{"redis-cli"}, regexp.MustCompile(`(\bredis-cli\b[^\n|;&]*?\s-a ?)[^\s"'<-][^\s"'<]*`)},
	{"argument", []string{" login"}, regexp.MustCompile(`(\b(?:docker|podman|helm)\b[^\n|;&]*?\blogin\b[^\n|;&]*?\s-p ?)[^\s"'<-][^\s"'<]*`)},
	{"argument", []string{" -u", " -a", " --user", " --auth", " --proxy-user"}, regexp.MustCompile(`(\b(?:curl|http)\b(?:[^\n|;&]|\\\n)*?\s(?:-u|-a|--user|--auth|--proxy-user)[ =]*["']?[^\s:"'<]+:["']?)[^\s"'<]+`)},
	{"assignment", []string{" provided: "}, regexp.MustCompile(`(\b(?i:key|token|password|secret) provided: ["']?)[^\s"'<]{6,}`)},
	{"netrc", []string{" password "}, regexp.MustCompile(`(\blogin\s+\S+\s+password\s+)[^\s<]+`)},
}

// hinted is a hint and the bits of its contexts.
type hinted struct {
	hint string
	bits uint64
}

// hintsByFirst has the hints by their first byte.
var hintsByFirst = func() (out [256][]hinted) {
	for i, f := range contexts {
		for _, h := range f.hints {
			out[h[0]] = append(out[h[0]], hinted{h, 1 << i})
		}
	}
	return out
}()

// withoutContexts replaces the secrets that the contexts find. It searches for all
// hints in one pass.
func withoutContexts(text string, rules []string) (string, []string) {
	found := uint64(0)
	for i := range len(text) {
		for _, h := range hintsByFirst[text[i]] {
			if strings.HasPrefix(text[i:], h.hint) {
				found |= h.bits
			}
		}
	}
	for i := range contexts {
		if found&(1<<i) != 0 {
			text, rules = contexts[i].replace(text, rules)
		}
	}
	return text, rules
}

func (f *context) replace(text string, rules []string) (string, []string) {
	w := writer{text: text, rules: rules}
	for _, at := range f.pattern.FindAllStringSubmatchIndex(text, -1) {
		from, to := at[0], at[1]
		if len(at) > 2 && at[3] >= 0 {
			from = at[3]
		}
		// The host after a password remains readable.
		if text[to-1] == '@' {
			to--
		}
		if !isMark(text[from:to]) {
			w.replace(from, to, f.rule)
		}
	}
	return w.result()
}
