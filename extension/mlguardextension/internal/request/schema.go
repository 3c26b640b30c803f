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

// children is the message of each field that values can be inside of.
var children = [...]map[int32]message{
	anyValue:     {5: arrayValue, 6: keyValueList},
	arrayValue:   {1: anyValue},
	keyValueList: {1: keyValue},
	keyValue:     {2: anyValue},
	resource:     {1: keyValue, 3: entityRef},
	scope:        {3: keyValue},
	exemplar:     {7: keyValue},
	entityRef:    {3: text, 4: text},

	tracesRequest: {1: resourceSpans},
	resourceSpans: {1: resource, 2: scopeSpans, deprecatedGroup: scopeSpans},
	scopeSpans:    {1: scope, 2: span},
	span:          {9: keyValue, 11: spanEvent, 13: spanLink},
	spanEvent:     {3: keyValue},
	spanLink:      {4: keyValue},

	metricsRequest:   {1: resourceMetrics},
	resourceMetrics:  {1: resource, 2: scopeMetrics, deprecatedGroup: scopeMetrics},
	scopeMetrics:     {1: scope, 2: metric},
	metric:           {5: numberData, 7: numberData, 9: histogramData, 10: exponentialData, 11: summaryData, 12: keyValue},
	numberData:       {1: numberPoint},
	histogramData:    {1: histogramPoint},
	exponentialData:  {1: exponentialPoint},
	summaryData:      {1: summaryPoint},
	numberPoint:      {7: keyValue, 5: exemplar},
	histogramPoint:   {9: keyValue, 8: exemplar},
	exponentialPoint: {1: keyValue, 8: buckets, 9: buckets, 11: exemplar},
	summaryPoint:     {7: keyValue, 6: quantile},

	logsRequest:  {1: resourceLogs},
	resourceLogs: {1: resource, 2: scopeLogs, deprecatedGroup: scopeLogs},
	scopeLogs:    {1: scope, 2: logRecord},
	logRecord:    {5: anyValue, 6: keyValue},

	profilesRequest:    {1: resourceProfiles, 2: profilesDictionary},
	resourceProfiles:   {1: resource, 2: scopeProfiles},
	scopeProfiles:      {1: scope, 2: other},
	profilesDictionary: {1: other, 2: other, 3: other, 4: other, 5: text, 6: keyValueAndUnit, 7: other},
	keyValueAndUnit:    {2: anyValue},
}

// memoryOf is how many bytes the decoder keeps for an empty message, with its place
// in a list, on 64-bit machines. Messages that are a part of the one around them,
// such as a resource, need none.
var memoryOf = [len(children)]int64{
	other: 224, anyValue: 40, arrayValue: 32, keyValueList: 32, keyValue: 48,
	exemplar: 96, entityRef: 96, text: 24, quantile: 32,
	resourceSpans: 144, scopeSpans: 128, span: 224, spanEvent: 80, spanLink: 96,
	resourceMetrics: 144, scopeMetrics: 128, metric: 112,
	numberData: 40, histogramData: 40, exponentialData: 40, summaryData: 40,
	numberPoint: 112, histogramPoint: 176, exponentialPoint: 208, summaryPoint: 112,
	resourceLogs: 144, scopeLogs: 128, logRecord: 144,
	resourceProfiles: 144, scopeProfiles: 128, profilesDictionary: 224, keyValueAndUnit: 96,
}

const (
	// memoryOfAny is the largest of memoryOf.
	memoryOfAny = 224
	// memoryOfElement is that of an element of a list of numbers or texts in JSON.
	memoryOfElement = 24
	// memoryOfCount is that of a count of an exponential histogram, which can be
	// one byte in a request.
	memoryOfCount = 8
)

// fields is children by number, without a map on the way of each field.
var fields = func() (table [len(children)][16]struct {
	child message
	known bool
},
) {
	for parent, numbers := range children {
		for number, child := range numbers {
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
	if field < int32(len(fields[parent])) {
		entry := fields[parent][field]
		return entry.child, entry.known
	}
	child, known := children[parent][field]
	return child, known
}
