package secret
import ("testing";"fmt";"encoding/base64")
func TestQuick(t *testing.T){
	const x = "0123456789abcdefABCDEFGHIJ"
	for _, in := range []string{
		"key AKIA" + "IOSFODNN7EXAMPLE.", "ghp_" + x, "use hf_" + x + " now",
		"eyJhbGciOiJI." + "eyJzdWIiOiIx.c2ln",
		"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----",
		"Authorization: Bearer " + x, "got Basic dXNlcjpwYXNz back","postgres://user:hunter2@db/x","redis://:hunter2@db",
		"https://b/x?X-Amz-Signature=abc&y=1","password=hunter2 x","{'db_password': 'hunter2'}",`{"api_key":"abc123"}`,
		"train.py --api-key abc123 --epochs 3","train.py --hf-token=abc123","Cookie: a=b; c=d","{'token': 'hunter2', 'eos_token': '</s>'}",
		`{"password": "correct horse \"battery\" staple", "n": 1}`, `{'password': "it's mine", 'n': 1}`,`{"body": "{\"api_key\": \"a b\", \"n\": 1}"}`,
		`train.py --password "two words" -v`,"Authorization: Token abc123 def\nHost: x", "X-Api-Key: abc123","ApiKey abc12345",
		"HUGGING_FACE_HUB_TOKEN=abc123","AWS_SECRET_ACCESS_KEY=abc/123+","AccountKey=abc123==;x",
		"ALTER USER a PASSWORD 'two words'","CREATE USER a IDENTIFIED BY 'hunter'",`SELECT * FROM t WHERE t."session_token" = 'it''s1' AND eos = 'x'`,
		"SELECT 1 WHERE a = 1 and token in ('abc')","UPDATE t SET pwd='abc', n = 'b'","SELECT * FROM t WHERE token = ? AND token_id = '7'",
		"q=password%3Dhunter2%26n%3D1 x","got cGFzc3dvcmQ9aHVudGVyMg== back","got " + base64.RawURLEncoding.EncodeToString([]byte(`{"api_key":"abc???"}`)),
		base64.StdEncoding.EncodeToString([]byte("nothing of importance, and no key at all")),
		"https://host/a%20b?x=%7B%22n%22%3A1%7D","EOS_TOKEN=</s> PAD_TOKEN=<pad>","enter your password ",`{"eos_token": "</s>", "max_tokens": 5, "token_type_ids": [0]}`,
		"tuft.session_id=abc-123","eos_token: </s>, pad_token_id: 0","KeyError: 'x'","see http://host:8080/path?x=1","task-1 risk-0123456789abcdef01",
		`headers=[(b'authorization', b'Digest username="x", response="abc"'), (b'host', b'h')]`,
		`['--password', 'hunter2', '--n', '3']`, `[{"name": "DB_PASSWORD", "value": "hunter2"}, {"name":"n","value":"y"}]`,
		`client = OpenAI(api_key=settings.api_key, token=get_token("x"), password=None)`, `<password>hunter2</password>`,
		`os.environ["API_KEY"] = "x123"`, `API key: abc123`, `{"set-cookie": ["a=b; c", "d=e"], "n": 1}`,
		`https://user:a/SECRET@host/x`, `https://0123456789abcdef@host`, `http://h:8080/a@b`, `https://x?pwd=abc1&auth=xyz1&id_token=ab.cd1`,
		`curl -H "Authorization: Digest a=b, c=d" http://x`, `pass=2 token=5 key=value tokens: 512`, `AWS4-HMAC-SHA256 Credential=AKID/2/us, SignedHeaders=a;b, Signature=abcdef rest`,
	} { out, r := Redact(in); again,_ := Redact(out); fmt.Println(in,"\n    ",out,r); if again!=out {fmt.Println("    AGAIN",again)} }
}
