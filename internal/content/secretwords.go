package content

import "strings"

// secretWords identify a secret if any word of a name ends in one of them.
var secretWords = strings.Fields("password passwd passphrase pwd secret credential authorization")

// beforeKey are the words before "key" that make it a credential.
var beforeKey = Words("access account admin aes api auth consumer crypt deploy encryption function functions gpg hmac master pgp private root rsa secret shared signing ssh ssl subscription tls webhook")

// beforePass are the words before "pass" that make it a password. A forward or
// backward pass is no password.
var beforePass = Words("admin app auth basic bind broker cert db default ftp http imap keystore ldap login mail mariadb mongo mysql pg postgres proxy rabbitmq redis root service smtp sql ssh sudo user vault")

// beforeTokens are the words before "tokens", or before "token" in one word,
// that make them credentials.
var beforeTokens = Words("access api auth bearer bot csrf deploy github gitlab hf id npm oauth personal private refresh registration secret security service session slack user vault xsrf")

// vocabularyToken are the words before "token" that make it a part of a text or
// a number instead of a credential.
var vocabularyToken = Words("a additional audio bos by cached class cls completion context current decoder draft each end eos eot every first forced generated image inter input last mask model new next one output pad per placeholder prev previous prompt reasoning s sampled sep single special start stop text the thinking time to unexpected unk unknown valid video word")

// describes are last words of names whose value describes a secret without
// containing it.
var describes = Words("arn count dir enabled expiration expires expiry field file format length name names path policy provider ref required size ttl type version")

// noValues are values that stand for no value, in lower case.
var noValues = Words("true false yes no none null nil undefined disabled enabled required optional missing empty redacted not invalid str string")
