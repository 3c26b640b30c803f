package content

import (
	"math/rand/v2"
	"strconv"
	"strings"
)

// A form is a way in which a secret is written. In a template, {alphabet:n}
// stands for n random characters, so that nothing here is a secret, and nobody
// who looks for some finds one.

// planted is a text with a secret in it.
type planted struct {
	class, name string
	// key is the name that the secret stands under, empty where its form alone
	// says what it is.
	key  string
	text string
	// parts are what must not be seen.
	parts []string
}

// Classes of the corpus.
const (
	classToken   = "tokens that begin in a way of their own"
	classNamed   = "values under a name"
	classURL     = "URLs"
	classHeader  = "headers and their schemes"
	classFile    = "private keys"
	classSQL     = "SQL"
	classCommand = "command lines"
)

// tokenTemplates are credentials that are known by their form. They are written
// as their issuers describe them.
const tokenTemplates = `
sk-proj-{word:60}	sk-svcacct-{word:48}	sk-admin-{word:40}	sk-{alnum:48}	sk-ant-api03-{word:80}	sk-or-v1-{hex:64}	sk-lf-{hex:36}
hf_{alnum:34}	api_org_{alnum:34}	gsk_{alnum:52}	nvapi-{word:64}	xai-{alnum:80}	pplx-{alnum:48}	csk-{lower:48}	r8_{alnum:37}	tgp_v1_{word:43}
fw_{alnum:24}	jina_{alnum:60}	tvly-dev-{alnum:32}	pcsk_{alnum:6}_{alnum:60}	e2b_{hex:40}	rpa_{alnum:40}	fc-{hex:32}	apify_api_{alnum:36}	esecret_{alnum:32}
lsv2_pt_{hex:32}_{hex:10}	lsv2_sk_{hex:32}_{hex:10}	pylf_v1_us_{alnum:43}	phx_{alnum:43}	glsa_{alnum:32}_{hex:8}	glc_{base:64}	sntrys_{base:90}	sntryu_{hex:64}
NRAK-{upper:27}	NRJS-{hex:19}	dt0c01.{upper:24}.{upper:64}	hcaik_{lower:58}	xaat-{hex:36}	wandb_v1_{alnum:70}
AKIA{upper:16}	ASIA{upper:16}	ABIA{upper:16}	AIza{word:35}	ya29.{word:120}	GOCSPX-{word:28}	1//0{word:60}
dop_v1_{hex:64}	doo_v1_{hex:64}	dor_v1_{hex:64}	HRKU-{word:58}	fm2_{base:80}	fo1_{word:43}	tskey-auth-{alnum:17}-{alnum:32}	tskey-api-{alnum:12}-{alnum:32}	pul-{hex:40}	pnu_{alnum:36}
LTAI{alnum:20}	AKID{alnum:32}	vercel_blob_rw_{alnum:16}_{alnum:32}	sbp_{hex:40}	sb_secret_{word:31}	pscale_tkn_{word:43}	pscale_pw_{word:43}	nfp_{alnum:36}	rnd_{alnum:28}
dapi{hex:32}	dapi{hex:32}-2	hvs.{word:90}	hvb.{word:140}	dp.pt.{alnum:43}	dp.st.dev.{alnum:43}	sha256~{word:43}	A3-{upper:6}-{upper:6}-{upper:5}-{upper:5}-{upper:5}
ghp_{alnum:36}	gho_{alnum:36}	ghu_{alnum:36}	ghs_{alnum:36}	ghr_{alnum:36}	github_pat_{alnum:22}_{alnum:59}
glpat-{word:20}	gldt-{word:20}	glrt-{word:20}	glcbt-1_{word:20}	glptt-{hex:40}	glft-{word:20}	glimt-{word:25}	glagent-{word:50}	gloas-{hex:64}	glsoat-{word:20}
npm_{alnum:36}	pypi-{word:100}	rubygems_{hex:48}	dckr_pat_{word:27}	dckr_oat_{word:32}	oy2{lower:43}	AKCp{alnum:69}
CCIPAT_{alnum:22}_{hex:40}	bkua_{hex:40}	ATATT3xFfGF0{word:160}	ATBB{alnum:32}	sgp_{hex:16}_{hex:40}	squ_{hex:40}	sqp_{hex:40}	figd_{word:40}	PMAK-{hex:24}-{hex:34}	lin_api_{alnum:40}	secret_{alnum:43}	ntn_{alnum:46}	xkeysib-{hex:64}-{alnum:16}
xoxb-{digit:12}-{digit:12}-{alnum:24}	xoxp-{digit:12}-{digit:12}-{digit:12}-{hex:32}	xoxe.xoxp-1-{alnum:140}	xapp-1-{upper:11}-{digit:13}-{hex:64}	SG.{word:22}.{word:43}	key-{hex:32}	SK{hex:32}
sk_live_{alnum:24}	sk_test_{alnum:24}	rk_live_{alnum:24}	whsec_{base:32}	shpat_{hex:32}	shpca_{hex:32}	shppa_{hex:32}	shpss_{hex:32}	sq0atp-{word:22}	sq0csp-{word:43}	EAAA{word:60}	EZAK{alnum:54}	shippo_live_{hex:40}
AGE-SECRET-KEY-1{upper:58}	EAAB{alnum:120}	{digit:9}:AA{word:33}	M{word:23}.G{word:5}.{word:38}	{alnum:3}8Q~{word:34}	{alnum:14}.atlasv1.{word:67}	{hex:32}-us12	pat{alnum:14}.{hex:64}
eyJ{word:30}.eyJ{word:60}.{word:43}	eyJ{word:30}..{word:16}.{word:60}.{word:22}
`

// names are what passwords, keys and tokens are called, as variables, members,
// headers, parameters and columns.
const names = `
password PASSWORD passwd pwd passphrase pass secret token credentials credential jwt auth bearer creds cookie apikey
PGPASSWORD DB_PASS MYSQL_PWD MYSQL_ROOT_PASSWORD POSTGRES_PASSWORD REDIS_PASSWORD RABBITMQ_DEFAULT_PASS MONGO_INITDB_ROOT_PASSWORD LDAP_BIND_PASSWORD DBPASSWORD
SMTP_PASS FTP_PASS VAULT_PASS SSHPASS user_pass db.pass userPass rootpass admin_password userPassword passwords new_password password_confirmation keystorePassword db-password
client_secret clientSecret CLIENT_SECRET app_secret secretKey secret_key SECRET_KEY_BASE DJANGO_SECRET_KEY JWT_SECRET NEXTAUTH_SECRET webhook_secret consumer_secret shared_secret signingSecret secrets secret_access_key AWS_SECRET_ACCESS_KEY
api_key apiKey API_KEY X-Api-Key x-goog-api-key OPENAI_API_KEY ANTHROPIC_API_KEY AZURE_OPENAI_API_KEY WANDB_API_KEY COHERE_API_KEY MISTRAL_API_KEY DD_API_KEY api-key apikeys api_keys X-RapidAPI-Key
ocp-apim-subscription-key x-functions-key subscriptionKey SharedAccessKey sharedKey AccountKey account_key accessKey access_key storageAccountKey master_key masterKey encryption_key signing_key private_key privateKey ssh_key sshKey ssh_private_key hmac_key consumer_key auth_key authKey
access_token accessToken ACCESS_TOKEN refresh_token refreshToken id_token auth_token authToken session_token AWS_SESSION_TOKEN x-amz-security-token bearer_token HF_TOKEN HUGGING_FACE_HUB_TOKEN hf_token GITHUB_TOKEN GH_TOKEN NPM_TOKEN VAULT_TOKEN SLACK_BOT_TOKEN TELEGRAM_BOT_TOKEN csrf_token X-CSRF-Token xsrfToken deploy_token user_token token_value accesstoken oauth_token X-Vault-Token PRIVATE-TOKEN registrationToken apiToken API_TOKEN access_tokens
db.credentials connection.password spring.datasource.password _authToken http.request.header.authorization http.request.header.cookie
`

// others are the forms that need more than one word. Their class is what stands
// before the first tab.
const others = classURL + "\tpostgres://user:{mixed:14}@db.example/x\n" +
	classURL + "\tpostgresql+psycopg2://svc:{alnum:16}@10.0.0.1:5432/x?sslmode=require\n" +
	classURL + "\tmysql://root:{alnum:6}/{alnum:10}@db.example:3306/x\n" +
	classURL + "\tpostgres://user:a/{alnum:12}@host\n" +
	classURL + "\tredis://:{alnum:20}@cache:6379/0\n" +
	classURL + "\tmongodb+srv://app:{alnum:8}@{alnum:8}@cluster.example/x\n" +
	classURL + "\tamqp://guest:{alnum:12}@mq:5672//\n" +
	classURL + "\thttps://{hex:40}@git.example/x.git\n" +
	classURL + "\thttps://{hex:32}@o1.ingest.example/42\n" +
	classURL + "\thttps://{alnum:40}:x-oauth-basic@git.example/x.git\n" +
	classURL + "\thttps://oauth2:{alnum:26}@git.example/x.git\n" +
	classURL + "\thttp://proxy:{alnum:11}@proxy.example:3128\n" +
	classURL + "\tapp:{alnum:14}@tcp(db:3306)/x\n" +
	classURL + "\thttps://api.example/v1?pwd={alnum:12}&x=1\n" +
	classURL + "\thttps://api.example/v1?x=1&auth={alnum:20}\n" +
	classURL + "\thttps://api.example/cb?id_token={word:60}\n" +
	classURL + "\thttps://api.example/v1?access_token={word:40}&x=1\n" +
	classURL + "\thttps://api.example/v1?token={alnum:32}\n" +
	classURL + "\thttps://api.example/v1?api_key={alnum:32}&q=x\n" +
	classURL + "\thttps://api.example/v1?key={alnum:39}\n" +
	classURL + "\thttps://api.example/v1?apikey={alnum:32}#top\n" +
	classURL + "\thttps://api.example/v1?client_secret={word:40}&grant_type=x\n" +
	classURL + "\thttps://b.example/x?X-Amz-Credential={upper:20}%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Signature={hex:64}&y=1\n" +
	classURL + "\thttps://b.example/x?X-Goog-Signature={hex:128}\n" +
	classURL + "\thttps://a.blob.example/c?sv=2024-01-01&sig={alnum:43}%3D&se=x\n" +
	classURL + "\thttps://fn.example/api/f?code={alnum:54}\n" +
	classURL + "\thttps://hooks.slack.com/services/T{upper:8}/B{upper:10}/{alnum:24}\n" +
	classURL + "\thttps://discord.com/api/webhooks/123456789012345678/{word:68}\n" +
	classURL + "\thttps://x.webhook.office.com/webhookb2/{hex:36}/IncomingWebhook/{hex:32}/{hex:36}\n" +
	classURL + "\thttps://api.telegram.org/bot{digit:9}:AA{word:33}/sendMessage\n" +
	classURL + "\thttps://maker.ifttt.com/trigger/x/with/key/{word:22}\n" +
	classURL + "\thttps://chat.example/hooks/{lower:26}\n" +
	classURL + "\thttps://open.feishu.cn/open-apis/bot/v2/hook/{hex:36}\n" +
	classURL + "\tDefaultEndpointsProtocol=https;AccountName=x;AccountKey={alnum:86}==;EndpointSuffix=x\n" +
	classURL + "\tEndpoint=sb://x.example/;SharedAccessKeyName=Root;SharedAccessKey={alnum:43}=\n" +
	classURL + "\tServer=db;Database=x;User Id=sa;Password={alnum:14};Encrypt=yes\n" +
	classURL + "\thost=db user=app password={alnum:14} dbname=x\n" +
	classHeader + "\tAuthorization: Bearer {word:40}\n" +
	classHeader + "\tauthorization: Basic {alnum:24}==\n" +
	classHeader + "\tAuthorization: Digest username=\"x\", realm=\"{alnum:12}\", nonce=\"{hex:32}\", response=\"{hex:32}\"\n" +
	classHeader + "\tDigest username=\"x\", realm=\"r\", nonce=\"{hex:32}\", uri=\"/\", response=\"{hex:32}\"\n" +
	classHeader + "\tAuthorization: AWS4-HMAC-SHA256 Credential={upper:20}/20260101/us-east-1/s3/aws4_request, SignedHeaders=host;range, Signature={hex:64}\n" +
	classHeader + "\tAWS4-HMAC-SHA256 Credential={upper:20}/20260101/us-east-1/s3/aws4_request,SignedHeaders=host,Signature={hex:64}\n" +
	classHeader + "\tAuthorization: Token {hex:40}\n" +
	classHeader + "\tAuthorization: ApiKey {alnum:40}\n" +
	classHeader + "\tAuthorization: {alnum:32}\n" +
	classHeader + "\tAuthorization: Negotiate {alnum:60}==\n" +
	classHeader + "\tAuthorization: SharedKey account:{alnum:43}=\n" +
	classHeader + "\tProxy-Authorization: Basic {alnum:28}\n" +
	classHeader + "\tBearer {alnum:32}\n" +
	classHeader + "\tBasic {alnum:20}\n" +
	classHeader + "\tCookie: sid={alnum:26}; theme=dark\n" +
	classHeader + "\tSet-Cookie: session={alnum:40}; HttpOnly; Path=/\n" +
	classHeader + "\tX-Api-Key: {alnum:32}\n" +
	classHeader + "\tOcp-Apim-Subscription-Key: {hex:32}\n" +
	classFile + "\t-----BEGIN RSA PRIVATE KEY-----\\n{line:64}\\n{line:64}\\n-----END RSA PRIVATE KEY-----\n" +
	classFile + "\t-----BEGIN PRIVATE KEY-----\\n{line:64}\\n{line:40}\\n-----END PRIVATE KEY-----\n" +
	classFile + "\t-----BEGIN ENCRYPTED PRIVATE KEY-----\\n{line:64}\\n-----END ENCRYPTED PRIVATE KEY-----\n" +
	classFile + "\t-----BEGIN EC PRIVATE KEY-----\\n{line:64}\\n-----END EC PRIVATE KEY-----\n" +
	classFile + "\t-----BEGIN OPENSSH PRIVATE KEY-----\\n{line:70}\\n{line:70}\\n-----END OPENSSH PRIVATE KEY-----\n" +
	classFile + "\t-----BEGIN PGP PRIVATE KEY BLOCK-----\\nVersion: x\\n\\n{line:64}\\n{line:64}\\n=abcd\\n-----END PGP PRIVATE KEY BLOCK-----\n" +
	classFile + "\t---- BEGIN SSH2 ENCRYPTED PRIVATE KEY ----\\n{line:64}\\n---- END SSH2 ENCRYPTED PRIVATE KEY ----\n" +
	classFile + "\tPuTTY-User-Key-File-3: ssh-ed25519\\nEncryption: none\\nPublic-Lines: 1\\nAAAA\\nPrivate-Lines: 1\\n{line:64}\\nPrivate-MAC: {hex:64}\n" +
	classFile + "\t-----BEGIN RSA PRIVATE KEY-----\\n{line:64}\\n{line:64}\n" +
	classSQL + "\tCREATE USER a IDENTIFIED BY '{alnum:12}'\n" +
	classSQL + "\tALTER USER a WITH PASSWORD '{alnum:12}'\n" +
	classSQL + "\tSELECT * FROM t WHERE token = '{alnum:24}' AND n = 1\n" +
	classSQL + "\tSELECT 1 FROM t WHERE t.\"session_token\" = '{alnum:24}'\n" +
	classSQL + "\tUPDATE users SET pwd='{alnum:12}', n = 'b'\n" +
	classSQL + "\tSELECT 1 FROM t WHERE n = 1 and api_key in ('{alnum:24}')\n" +
	classSQL + "\tSELECT 1 FROM t WHERE t.secret LIKE '{alnum:20}'\n" +
	classSQL + "\tSELECT 1 FROM t WHERE token <> '{alnum:20}'\n" +
	classCommand + "\ttrain.py --api-key {alnum:24} --epochs 3\n" +
	classCommand + "\ttrain.py --hf-token={alnum:24}\n" +
	classCommand + "\tjob --password \"{alnum:5} {alnum:8}\" -v\n" +
	classCommand + "\tjob --db-password '{mixed:12}' -v\n" +
	classCommand + "\ttool -token {alnum:24} x\n" +
	classCommand + "\tmysql -h db -u root -p{alnum:12} x\n" +
	classCommand + "\tmysqldump -uroot -p{alnum:12} x\n" +
	classCommand + "\tsshpass -p {alnum:12} ssh host\n" +
	classCommand + "\tredis-cli -h cache -a {alnum:16} ping\n" +
	classCommand + "\tcurl -s -u user:{alnum:14} https://api.example\n" +
	classCommand + "\tcurl -H \"Authorization: Token {alnum:24}\" https://api.example\n" +
	classCommand + "\tcurl -H 'X-Api-Key: {alnum:24}' https://api.example\n" +
	classCommand + "\tdocker login -u me -p {alnum:16} registry.example\n" +
	classCommand + "\tmachine api.example login me password {alnum:16}\n" +
	classCommand + "\tPGPASSWORD={alnum:12} psql -h db\n" +
	classCommand + "\tdocker run -e DB_PASS={alnum:12} -e N=1 image\n"

// corpus makes one secret of each form.
func corpus(r *rand.Rand) []planted {
	var all []planted
	add := func(class, key, template string) {
		text, parts := fill(r, template)
		all = append(all, planted{class: class, name: strings.ReplaceAll(template, "\\n", " "), key: key, text: text, parts: parts})
	}
	for template := range strings.FieldsSeq(tokenTemplates) {
		add(classToken, "", template)
	}
	for i, name := range strings.Fields(names) {
		add(classNamed, name, []string{"{alnum:16}", "{alnum:24}", "{hex:32}", "{word:20}", "{alnum:9}"}[i%5])
	}
	for line := range strings.Lines(others) {
		class, template, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		add(class, "", template)
	}
	return all
}

// alphabets are what {alphabet:n} stands for.
var alphabets = map[string]string{
	"alnum": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
	"lower": "abcdefghijklmnopqrstuvwxyz0123456789",
	"upper": "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567",
	"hex":   "0123456789abcdef",
	"digit": "123456789",
	"word":  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-",
	"base":  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	"line":  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	"mixed": "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789!*^.~",
}

// fill puts random characters in a template, and returns them too.
func fill(r *rand.Rand, template string) (string, []string) {
	var out strings.Builder
	var parts []string
	template = strings.ReplaceAll(template, "\\n", "\n")
	for {
		before, rest, found := strings.Cut(template, "{")
		out.WriteString(before)
		if !found {
			return out.String(), parts
		}
		spec, after, _ := strings.Cut(rest, "}")
		name, length, _ := strings.Cut(spec, ":")
		n, err := strconv.Atoi(length)
		if err != nil {
			panic(template)
		}
		part := make([]byte, n)
		for i := range part {
			part[i] = alphabets[name][r.IntN(len(alphabets[name]))]
		}
		// The ends are letters, as word boundaries are not what is measured.
		if name != "digit" && name != "hex" {
			part[0], part[n-1] = alphabets["upper"][r.IntN(26)], alphabets["upper"][r.IntN(26)]
			if name == "lower" {
				part[0], part[n-1] = 'a', 'z'
			}
		}
		out.Write(part)
		// What is short may be elsewhere by chance.
		if n >= 5 {
			parts = append(parts, string(part))
		}
		template = after
	}
}
