package table

// ModelCall is where a client's spans have a request to a model.
type ModelCall struct {
	// OperationKeys name the span's operation, and Requests are the operations,
	// in small letters, that are one request to a model.
	OperationKeys []string `yaml:"operation_keys"`
	Requests      []string
	// AddressKeys have the base URL of the model's API.
	AddressKeys []string `yaml:"address_keys"`
	// Listed is set for a client that writes the messages of a request as
	// attributes one by one, or the whole request as one.
	Listed *ListedRequest
}

// ListedRequest are the keys of a request whose messages are attributes one by
// one: Messages + ".0.message.role" and so on.
type ListedRequest struct {
	// The keys count only on spans whose KindKey has the value Kind, in any case.
	KindKey string `yaml:"kind_key"`
	Kind    string
	// Messages and Tools begin the keys of messages and tool definitions,
	// without the dot before the number.
	Messages, Tools string
	// Parameters has the parameters of the request as JSON, and Model the
	// model where these do not name it.
	Parameters, Model string
	// Body has the whole request where BodyType is application/json.
	Body     string
	BodyType string `yaml:"body_type"`
}
