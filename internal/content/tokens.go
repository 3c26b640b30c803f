package content

import "strings"

// alphabet is a set of bytes, written like a character class of a regular
// expression without brackets.
type alphabet string

const (
	alnum  alphabet = "A-Za-z0-9"
	upper  alphabet = "A-Z0-9"
	lower  alphabet = "a-z0-9"
	hex    alphabet = "0-9a-f"
	word   alphabet = "A-Za-z0-9_-"
	dotted alphabet = "A-Za-z0-9_.-"
	base   alphabet = "A-Za-z0-9+/=_-"
)

// token is a kind of credential with a known prefix.
type token struct {
	rule     string
	prefixes string
	of       alphabet
	// min is the minimal number of bytes after the prefix.
	min int
	// exact requires exactly min bytes after the prefix.
	exact bool
}

// tokens lists the credentials with a known prefix.
var tokens = []token{
	// Models, their hosts and observability services.
	{"api_key", "sk-", word, 16, false},
	{"huggingface_token", "hf_ api_org_", alnum, 16, false},
	{"model_api_key", "gsk_ xai- pplx- csk- r8_ fw_ rpa_ jina_ apify_api_ esecret_", alnum, 24, false},
	{"model_api_key", "nvapi- tgp_v1_ tvly- pcsk_", word, 24, false},
	{"model_api_key", "ABSK bedrock-api-key-", base, 24, false},
	{"model_api_key", "fc-", hex, 32, true},
	{"model_api_key", "e2b_", hex, 40, false},
	{"tracing_key", "lsv2_pt_ lsv2_sk_ ls__ pylf_v1_ wandb_v1_ phx_ NRAK- NRAL- NRJS- NRII- hcaik_ hcamk_ sntryu_ xaat- xapt-", word, 16, false},
	{"tracing_key", "glsa_ glc_ sntrys_ dt0c01.", "A-Za-z0-9+/=_.-", 20, false},
	// Clouds.
	{"aws_key", "AKIA ASIA ABIA ACCA", upper, 16, true},
	{"google_key", "AIza", word, 30, false},
	{"google_token", "ya29. GOCSPX-", dotted, 16, false},
	{"google_token", "1//0", word, 40, false},
	{"cloud_token", "LTAI AKID sbp_ pul- pnu_ napi_ nfp_ rnd_ ocp_ tfp_", alnum, 20, false},
	{"cloud_token", "dop_v1_ doo_v1_ dor_v1_ HRKU- fo1_ tskey- vercel_blob_rw_ sb_secret_ pscale_tkn_ pscale_pw_ pscale_oauth_", word, 20, false},
	{"cloud_token", "fm1_ fm1a_ fm1r_ fm2_ FlyV1_", base, 20, false},
	{"databricks_token", "dapi", hex, 32, false},
	{"vault_token", "hvs. hvb. hvr. ops_eyJ", word, 20, false},
	{"vault_token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", dotted, 24, false},
	{"vault_token", "A3-", "A-Z0-9-", 26, false},
	{"openshift_token", "sha256~", word, 40, false},
	// Code hosting, registries and build services.
	{"github_token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", "A-Za-z0-9_", 20, false},
	{"gitlab_token", "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt- GR1348941", word, 16, false},
	{"registry_token", "npm_ AKCp cio", alnum, 30, false},
	{"registry_token", "pypi- dckr_pat_ dckr_oat_ CLOJARS_", word, 24, false},
	{"registry_token", "rubygems_ oy2", lower, 43, false},
	{"build_token", "squ_ sqp_ sqa_ bkua_", hex, 40, false},
	{"build_token", "secret_ ntn_ lin_api_ lin_oauth_ ATBB", alnum, 32, false},
	{"build_token", "CCIPAT_ CCIPRJ_ ATATT3 ATCTT3 ATSTT3 sgp_ CFPAT- figd_ PMAK- rdme_ xkeysib- xsmtpsib-", word, 30, false},
	{"build_token", "dnkey- fio-u-", base, 30, false},
	// Messaging and payment.
	{"slack_token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe. xapp- xwfp-", dotted, 20, false},
	{"mailgun_key", "key- SK", hex, 32, true},
	{"payment_key", "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_", alnum, 10, false},
	{"payment_key", "shpat_ shpca_ shppa_ shpss_ shippo_live_ shippo_test_", alnum, 20, false},
	{"payment_key", "sq0atp- sq0csp- FLWSECK- FLWSECK_TEST- duffel_live_ duffel_test_", word, 12, false},
	{"payment_key", "whsec_", base, 20, false},
	{"payment_key", "EZAK EZTK", alnum, 50, false},
	{"age_key", "AGE-SECRET-KEY-1", upper, 40, false},
}

// prefixed is one prefix of a token.
type prefixed struct {
	*token
	prefix string
	of     [256]bool
}

// byFirst has the prefixes by their first byte.
var byFirst = func() (out [256][]prefixed) {
	for i := range tokens {
		of := tokens[i].of.bytes()
		for p := range strings.FieldsSeq(tokens[i].prefixes) {
			out[p[0]] = append(out[p[0]], prefixed{&tokens[i], p, of})
		}
	}
	return out
}()

// bytes returns the set as a table.
func (a alphabet) bytes() (out [256]bool) {
	for i := 0; i < len(a); i++ {
		if i+2 < len(a) && a[i+1] == '-' {
			for c := a[i]; c <= a[i+2]; c++ {
				out[c] = true
			}
			i += 2
			continue
		}
		out[a[i]] = true
	}
	return out
}

// withoutTokens replaces tokens. A token begins only where a word can begin.
func withoutTokens(text string, rules []string) (string, []string) {
	w := writer{text: text, rules: rules}
	w.tokens()
	return w.result()
}

func (w *writer) tokens() {
	for i := 0; i < len(w.text); i++ {
		if byFirst[w.text[i]] == nil || !begins(w.text, i) {
			continue
		}
		for _, p := range byFirst[w.text[i]] {
			if end := w.tokenEnd(p, i); end > 0 {
				w.replace(i, end, p.rule)
				i = end - 1
				break
			}
		}
	}
}

// tokenEnd returns the end of the token that begins at i, or 0. If there is
// none, it reads at most min bytes.
func (w *writer) tokenEnd(p prefixed, i int) int {
	text := w.text
	if !strings.HasPrefix(text[i:], p.prefix) {
		return 0
	}
	start := i + len(p.prefix)
	end := start
	for end < len(text) && p.of[text[end]] && (!p.exact || end-start <= p.min) {
		end++
	}
	w.read += end - start
	if end-start < p.min || p.exact && (end-start > p.min || end < len(text) && wordByte[text[end]]) {
		return 0
	}
	return end
}

var wordByte = alphabet("A-Za-z0-9_").bytes()

// begins reports whether a word can begin at i: after a byte that is not part
// of a word, or after an escaped line break or tab, as in JSON.
func begins(text string, i int) bool {
	if i == 0 || !wordByte[text[i-1]] {
		return true
	}
	switch text[i-1] {
	case 'n', 'r', 't':
		return i > 1 && text[i-2] == '\\'
	}
	return false
}
