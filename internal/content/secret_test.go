package content

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestRedact(t *testing.T) {
	// The secrets are put together here so that no scanner takes this file
	// for a leak.
	const x = "0123456789abcdefABCDEFGHIJ"
	for in, want := range map[string]string{
		"key AKIA" + "IOSFODNN7EXAMPLE.":      "key <REDACTED:aws_key>.",
		"ghp_" + x:                            "<REDACTED:github_token>",
		"use hf_" + x + " now":                "use <REDACTED:huggingface_token> now",
		"sk-" + x:                             "<REDACTED:api_key>",
		"xoxb-" + x:                           "<REDACTED:slack_token>",
		"eyJhbGciOiJI." + "eyJzdWIiOiIx.c2ln": "<REDACTED:jwt>",
		"-----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY-----": "<REDACTED:private_key>",
		"-----BEGIN PRIVATE KEY-----\nMII cut":                                "<REDACTED:private_key>",
		"Authorization: Bearer " + x:                                          "Authorization: Bearer <REDACTED:authorization>",
		"got Basic dXNlcjpwYXNz back":                                         "got Basic <REDACTED:authorization> back",
		"postgres://user:hunter2@db/x":                                        "postgres://user:<REDACTED:url_password>@db/x",
		"redis://:hunter2@db":                                                 "redis://:<REDACTED:url_password>@db",
		"https://b/x?X-Amz-Signature=abc&y=1":                                 "https://b/x?X-Amz-Signature=<REDACTED:signed_url>&y=1",
		"password=hunter2 x":                                                  "password=<REDACTED:assignment> x",
		"{'db_password': 'hunter2'}":                                          "{'db_password': '<REDACTED:assignment>'}",
		`{"api_key":"abc123"}`:                                                `{"api_key":"<REDACTED:assignment>"}`,
		"train.py --api-key abc123 --epochs 3":                                "train.py --api-key <REDACTED:argument> --epochs 3",
		"train.py --hf-token=abc123":                                          "train.py --hf-token=<REDACTED:assignment>",
		"Cookie: a=b; c=d":                                                    "Cookie: <REDACTED:cookie>",
		"{'token': 'hunter2', 'eos_token': '</s>'}":                           "{'token': '<REDACTED:assignment>', 'eos_token': '</s>'}",
		// Quotes, and JSON in JSON.
		`{"password": "correct horse \"battery\" staple", "n": 1}`: `{"password": "<REDACTED:assignment>", "n": 1}`,
		`{'password': "it's mine", 'n': 1}`:                        `{'password': "<REDACTED:assignment>", 'n': 1}`,
		`{"body": "{\"api_key\": \"a b\", \"n\": 1}"}`:             `{"body": "{\"api_key\": \"<REDACTED:assignment>\", \"n\": 1}"}`,
		`train.py --password "two words" -v`:                       `train.py --password "<REDACTED:argument>" -v`,
		// Headers.
		"Authorization: Token abc123 def\nHost: x": "Authorization: Token <REDACTED:authorization>\nHost: x",
		"X-Api-Key: abc123":                        "X-Api-Key: <REDACTED:assignment>",
		"ApiKey abc12345":                          "ApiKey <REDACTED:authorization>",
		// Variables.
		"HUGGING_FACE_HUB_TOKEN=abc123":  "HUGGING_FACE_HUB_TOKEN=<REDACTED:assignment>",
		"AWS_SECRET_ACCESS_KEY=abc/123+": "AWS_SECRET_ACCESS_KEY=<REDACTED:assignment>",
		"AccountKey=abc123==;x":          "AccountKey=<REDACTED:assignment>;x",
		// SQL.
		"ALTER USER a PASSWORD 'two words'":                               "ALTER USER a PASSWORD '<REDACTED:sql>'",
		"CREATE USER a IDENTIFIED BY 'hunter'":                            "CREATE USER a IDENTIFIED BY '<REDACTED:sql>'",
		`SELECT * FROM t WHERE t."session_token" = 'it''s' AND eos = 'x'`: `SELECT * FROM t WHERE t."session_token" = '<REDACTED:assignment>' AND eos = 'x'`,
		"SELECT 1 WHERE a = 1 and token in ('abc')":                       "SELECT 1 WHERE a = 1 and token in ('<REDACTED:sql>')",
		"UPDATE t SET pwd='abc', n = 'b'":                                 "UPDATE t SET pwd='<REDACTED:assignment>', n = 'b'",
		"SELECT * FROM t WHERE token = ? AND token_id = '7'":              "SELECT * FROM t WHERE token = ? AND token_id = '7'",
		// More forms.
		"glpat-" + x:   "<REDACTED:gitlab_token>",
		"sk_live_" + x: "<REDACTED:payment_key>",
		"ya29." + x:    "<REDACTED:google_token>",
		"npm_" + x + x: "<REDACTED:registry_token>",
		// Encoded once.
		"q=password%3Dhunter2%26n%3D1 x":                                                "<REDACTED:encoded> x",
		"got cGFzc3dvcmQ9aHVudGVyMg== back":                                             "got <REDACTED:encoded> back",
		"got " + base64.RawURLEncoding.EncodeToString([]byte(`{"api_key":"abc???"}`)):   "got <REDACTED:encoded>",
		"got " + base64.StdEncoding.EncodeToString([]byte("pass=hunter")) + ".":         "got <REDACTED:encoded>.",
		"got " + base64.StdEncoding.EncodeToString([]byte("ein schönes password=abcé")): "got <REDACTED:encoded>",
		// What an API answers, and other forms of assignments.
		"Incorrect API key provided: abcd1234efgh. See": "Incorrect API key provided: <REDACTED:assignment> See",
		`var authToken string = "abc123"`:               `var authToken string = "<REDACTED:assignment>"`,
		"API_KEY ?= abc123":                             "API_KEY ?= <REDACTED:assignment>",
		// What is no secret stays.
		base64.StdEncoding.EncodeToString([]byte("nothing of importance, and no key at all")): base64.StdEncoding.EncodeToString([]byte("nothing of importance, and no key at all")),
		base64.StdEncoding.EncodeToString([]byte("\x00password=hunter2\x01\x02")):             base64.StdEncoding.EncodeToString([]byte("\x00password=hunter2\x01\x02")),
		"https://host/a%20b?x=%7B%22n%22%3A1%7D":                                              "https://host/a%20b?x=%7B%22n%22%3A1%7D",
		"EOS_TOKEN=</s> PAD_TOKEN=<pad>":                                                      "EOS_TOKEN=</s> PAD_TOKEN=<pad>",
		"enter your password ":                                                                "enter your password ",
		`{"eos_token": "</s>", "max_tokens": 5, "token_type_ids": [0]}`:                       `{"eos_token": "</s>", "max_tokens": 5, "token_type_ids": [0]}`,
		"expected 3 tokens, got 4":                                                            "expected 3 tokens, got 4",
		"tuft.session_id=abc-123":                                                             "tuft.session_id=abc-123",
		"eos_token: </s>, pad_token_id: 0":                                                    "eos_token: </s>, pad_token_id: 0",
		"KeyError: 'x'":                                                                       "KeyError: 'x'",
		"see http://host:8080/path?x=1":                                                       "see http://host:8080/path?x=1",
		"task-1 risk-0123456789abcdef01":                                                      "task-1 risk-0123456789abcdef01",
		"4d5a9f3c-0000-1111-2222-333344445555 lost":                                           "4d5a9f3c-0000-1111-2222-333344445555 lost",
	} {
		got, rules := Redact(in)
		assert.Equal(t, want, got)
		assert.Len(t, rules, strings.Count(want, markStart), in)
		got, rules = Redact(got)
		assert.Equal(t, want, got, "redacting twice changes nothing")
		assert.Empty(t, rules)
	}
}

func TestKey(t *testing.T) {
	for key, want := range map[string]bool{
		"password": true, "db.password": true, "userPassword": true, "PASSWD": true, "client_secret": true,
		"api_key": true, "apiKey": true, "X-Api-Key": true, "apikey": true, "aws_secret_access_key": true,
		"authorization": true, "http.request.header.authorization": true, "set-cookie": true,
		"token": true, "hf_token": true, "access_token": true, "authToken": true, "auth": true,
		"eos_token": false, "pad_token": false, "pad_token_id": false, "token_type_ids": false, "bos_token": false,
		"gen_ai.usage.prompt_tokens": false, "max_tokens": false, "next_token": false, "tokens": false,
		"tuft.session_id": false, "ml.request.id": false, "primary_key": false, "key": false, "keys": false,
		"monkey": false, "passenger": false, "author": false, "secretary": false, "": false,
	} {
		assert.Equal(t, want, IsSecretKey(key), key)
	}
}
