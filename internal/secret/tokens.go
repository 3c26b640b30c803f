package secret

import "strings"

// alphabet says which bytes a token is made of. In a regular expression it is
// what stands in brackets.
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

// token is a kind of credential that is known by how it begins.
type token struct {
	rule     string
	prefixes string
	of       alphabet
	// min is the least number of bytes behind the prefix.
	min int
	// exact means that no byte of the alphabet follows the first min ones.
	exact bool
}

// tokens lists the credentials that begin in a way of their own.
var tokens = []token{
	// Models, their hosts and what observes them.
	{"api_key", "sk-", word, 16, false},
	{"huggingface_token", "hf_ api_org_", alnum, 16, false},
	{"model_api_key", "gsk_ nvapi- xai- pplx- csk- tgp_v1_ fw_ jina_ tvly- r8_ esecret_ rpa_ pcsk_ e2b_ apify_api_ voyage- pa-", word, 24, false},
	{"model_api_key", "fc-", hex, 32, true},
	{"tracing_key", "lsv2_pt_ lsv2_sk_ ls__ pylf_v1_ wandb_v1_ phx_ glsa_ glc_ NRAK- NRAL- NRJS- NRII- dt0c01. hcaik_ hcamk_ sntrys_ sntryu_ xaat- xapt-", dotted, 20, false},
	// Clouds.
	{"aws_key", "AKIA ASIA ABIA ACCA", upper, 16, true},
	{"google_key", "AIza", word, 30, false},
	{"google_token", "ya29. GOCSPX- 1//0", dotted, 16, false},
	{"cloud_token", "dop_v1_ doo_v1_ dor_v1_ HRKU- fo1_ fm1_ fm2_ FlyV1_ tskey- pul- pnu_ LTAI AKID vcp_ vercel_blob_rw_ sbp_ sb_secret_ pscale_tkn_ pscale_pw_ pscale_oauth_ napi_ nfp_ rnd_ cfut_ tfp_ ocp_", word, 20, false},
	{"databricks_token", "dapi", hex, 32, false},
	{"vault_token", "hvs. hvb. hvr.", word, 20, false},
	{"vault_token", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit. ops_eyJ A3-", dotted, 24, false},
	{"openshift_token", "sha256~", word, 40, false},
	// Code, its registries and what builds it.
	{"github_token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", "A-Za-z0-9_", 20, false},
	{"gitlab_token", "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- gloas- glsoat- glffct- glwt- GR1348941", word, 16, false},
	{"registry_token", "npm_ pypi- rubygems_ dckr_pat_ dckr_oat_ oy2 AKCp CLOJARS_ cio", word, 24, false},
	{"build_token", "CCIPAT_ CCIPRJ_ bkua_ ATATT3 ATBB ATCTT3 ATSTT3 sgp_ squ_ sqp_ sqa_ ico- API- CFPAT- figd_ PMAK- lin_api_ lin_oauth_ secret_ ntn_ rdme_ dnkey- xkeysib- xsmtpsib-", word, 24, false},
	// Messages and payments.
	{"slack_token", "xoxa- xoxb- xoxe- xoxo- xoxp- xoxr- xoxs- xoxe. xapp- xwfp-", dotted, 8, false},
	{"sendgrid_token", "SG.", dotted, 20, false},
	{"mailgun_key", "key- SK", hex, 32, true},
	{"payment_key", "sk_live_ sk_test_ rk_live_ rk_test_", alnum, 10, false},
	{"payment_key", "whsec_ shpat_ shpca_ shppa_ shpss_ sq0atp- sq0csp- EAAA FLWSECK- EZAK EZTK shippo_live_ shippo_test_ duffel_live_ duffel_test_ live_pub_ ddapi_", base, 20, false},
	{"age_key", "AGE-SECRET-KEY-1", upper, 40, false},
	{"facebook_token", "EAACEdEose0cBA EAAB EAAG EAAM IGQV", alnum, 30, false},
}

// prefixed is one prefix of a token.
type prefixed struct {
	*token
	prefix string
	of     [256]bool
}

// byFirst has the prefixes by the byte that they begin with.
var byFirst = func() (out [256][]prefixed) {
	for i := range tokens {
		of := tokens[i].of.bytes()
		for _, p := range strings.Fields(tokens[i].prefixes) {
			out[p[0]] = append(out[p[0]], prefixed{&tokens[i], p, of})
		}
	}
	return out
}()

// bytes returns the set that a describes.
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

// withoutTokens replaces the tokens. One begins where no word goes on.
func withoutTokens(text string, rules *[]string) string {
	w := writer{text: text, rules: rules}
	for i := 0; i < len(text); i++ {
		if byFirst[text[i]] == nil || !begins(text, i) {
			continue
		}
		for _, p := range byFirst[text[i]] {
			if end := p.end(text, i); end > 0 {
				w.replace(i, end, p.rule)
				i = end - 1
				break
			}
		}
	}
	return w.String()
}

// end returns where the token that begins at i ends, or 0. It looks at no more
// than min bytes in vain.
func (p *prefixed) end(text string, i int) int {
	if !strings.HasPrefix(text[i:], p.prefix) {
		return 0
	}
	start := i + len(p.prefix)
	end := start
	for end < len(text) && p.of[text[end]] && !(p.exact && end-start > p.min) {
		end++
	}
	if end-start < p.min || p.exact && (end-start > p.min || end < len(text) && wordByte[text[end]]) {
		return 0
	}
	return end
}

var wordByte = alphabet("A-Za-z0-9_").bytes()

// begins reports whether a word can begin at i: behind a byte of no word, or
// behind an escaped line break or tab, as in JSON.
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
