package request

// message is an OTLP message that can contain values.
type message uint8

const (
	other message = iota
	anyValue
	arrayValue
	keyValueList
	keyValue
	resource
	scope
	exemplar
	entityRef
	text // an element of a list of strings
	quantile
	buckets
	tracesRequest
	resourceSpans
	scopeSpans
	span
	spanEvent
	spanLink
	metricsRequest
	resourceMetrics
	scopeMetrics
	metric
	numberData
	histogramData
	exponentialData
	summaryData
	numberPoint
	histogramPoint
	exponentialPoint
	summaryPoint
	logsRequest
	resourceLogs
	scopeLogs
	logRecord
	profilesRequest
	resourceProfiles
	scopeProfiles
	profilesDictionary
	keyValueAndUnit
)

// deprecatedGroup is the number of the field with which the first versions of
// OTLP grouped items. The decoder takes it.
const deprecatedGroup = 1000

// fields are the messages of the fields that values can be inside of, by number.
type fields = map[int32]message

// messages has of each message how many bytes the decoder keeps for an empty one, with
// its place in a list, on 64-bit machines, and its fields. Messages that are a part of the
// one around them, such as a resource, need no memory.
var messages = [...]struct {
	memory int64
	fields fields
}{
	other:        {224, nil},
	text:         {24, nil},
	quantile:     {32, nil},
	anyValue:     {40, fields{5: arrayValue, 6: keyValueList}},
	arrayValue:   {32, fields{1: anyValue}},
	keyValueList: {32, fields{1: keyValue}},
	keyValue:     {48, fields{2: anyValue}},
	resource:     {0, fields{1: keyValue, 3: entityRef}},
	scope:        {0, fields{3: keyValue}},
	exemplar:     {96, fields{7: keyValue}},
	entityRef:    {96, fields{3: text, 4: text}},

	tracesRequest: {0, fields{1: resourceSpans}},
	resourceSpans: {144, fields{1: resource, 2: scopeSpans, deprecatedGroup: scopeSpans}},
	scopeSpans:    {128, fields{1: scope, 2: span}},
	span:          {224, fields{9: keyValue, 11: spanEvent, 13: spanLink}},
	spanEvent:     {80, fields{3: keyValue}},
	spanLink:      {96, fields{4: keyValue}},

	metricsRequest:   {0, fields{1: resourceMetrics}},
	resourceMetrics:  {144, fields{1: resource, 2: scopeMetrics, deprecatedGroup: scopeMetrics}},
	scopeMetrics:     {128, fields{1: scope, 2: metric}},
	metric:           {112, fields{5: numberData, 7: numberData, 9: histogramData, 10: exponentialData, 11: summaryData, 12: keyValue}},
	numberData:       {40, fields{1: numberPoint}},
	histogramData:    {40, fields{1: histogramPoint}},
	exponentialData:  {40, fields{1: exponentialPoint}},
	summaryData:      {40, fields{1: summaryPoint}},
	numberPoint:      {112, fields{7: keyValue, 5: exemplar}},
	histogramPoint:   {176, fields{9: keyValue, 8: exemplar}},
	exponentialPoint: {208, fields{1: keyValue, 8: buckets, 9: buckets, 11: exemplar}},
	summaryPoint:     {112, fields{7: keyValue, 6: quantile}},

	logsRequest:  {0, fields{1: resourceLogs}},
	resourceLogs: {144, fields{1: resource, 2: scopeLogs, deprecatedGroup: scopeLogs}},
	scopeLogs:    {128, fields{1: scope, 2: logRecord}},
	logRecord:    {144, fields{5: anyValue, 6: keyValue}},

	profilesRequest:    {0, fields{1: resourceProfiles, 2: profilesDictionary}},
	resourceProfiles:   {144, fields{1: resource, 2: scopeProfiles}},
	scopeProfiles:      {128, fields{1: scope, 2: other}},
	profilesDictionary: {224, fields{1: other, 2: other, 3: other, 4: other, 5: text, 6: keyValueAndUnit, 7: other}},
	keyValueAndUnit:    {96, fields{2: anyValue}},
}

const (
	// memoryOfAny is the largest of messages.
	memoryOfAny = 224
	// memoryOfElement is that of an element of a list of numbers or texts in JSON.
	memoryOfElement = 24
	// memoryOfCount is that of a count of an exponential histogram, which can be
	// one byte in a request.
	memoryOfCount = 8
)

// byNumber has the fields without a map on the way of each.
var byNumber = func() (table [len(messages)][16]struct {
	child message
	known bool
},
) {
	for parent, of := range messages {
		for number, child := range of.fields {
			if number < 16 {
				table[parent][number].child, table[parent][number].known = child, true
			}
		}
	}
	return table
}()

// childOf returns the message of a field, and whether the field is a message
// that counts.
func childOf(parent message, field int32) (message, bool) {
	if field < int32(len(byNumber[parent])) {
		entry := byNumber[parent][field]
		return entry.child, entry.known
	}
	child, known := messages[parent].fields[field]
	return child, known
}
