package main

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"

	_ "go.opentelemetry.io/otel/attribute" // the conventions are beside it
)

// nouns are last words of keys whose text names a thing of the program or its
// machine. A convention's text attribute is kept if its key ends in one of them
// and is not in personal.
var nouns = []string{
	"id", "uid", "uuid", "name", "type", "version", "kind", "state", "status", "code", "mode", "language",
	"platform", "system", "operation", "method", "scheme", "protocol", "zone", "region", "family", "revision",
	"architecture", "vendor", "model", "level", "tier", "namespace", "route", "template", "digest", "fingerprint",
	"arn", "manufacturer", "identifier", "parent", "location", "variant", "curve", "cipher", "reason", "reasons",
	"direction", "component", "identifiers", "tags", "formats", "number", "commit", "service", "stepping", "pdb",
	"description", "reference", "size", "location", "digests", "policy", "mountpoint", "device", "dc",
}

// personal are the prefixes of keys whose text is about people, or is their
// input or property, although the key ends in a noun.
var personal = []string{
	"app.", "browser.", "client.", "destination.", "device.id", "dns.", "enduser.", "feature_flag.context.",
	"feature_flag.error.", "file.", "gen_ai.agent.description", "gen_ai.tool.description", "geo.", "host.ip",
	"log.", "mcp.resource.", "messaging.kafka.message.", "messaging.rocketmq.message.", "network.carrier.",
	"otel.status_description", "pprof.", "process.owner", "process.real_user.", "process.saved_user.", "process.user.",
	"security_rule.description", "source.", "tls.client.", "tls.server.", "url.path", "url.query", "url.full",
	"user.", "user_agent.original", "vcs.change.title", "vcs.owner.", "vcs.ref.", "db.query.text", "messaging.message.body",
}

// besides are further attributes that are kept.
var besides = []string{
	"code.file.path", "exception.type", "server.address", "url.scheme", "url.template", "db.query.summary",
	"db.collection.name", "rpc.method", "process.executable.path", "aws.s3.bucket", "vcs.ref.head.revision",
}

// labels are the keys whose text has several words: product names.
var labels = []string{
	"service.name", "hw.name", "hw.model", "hw.vendor", "host.cpu.model.name", "host.cpu.vendor.id",
	"os.description", "os.name", "device.model.name", "process.runtime.description", "webengine.description",
	"container.runtime.description", "thread.name", "db.query.summary", "gen_ai.agent.name", "gen_ai.workflow.name",
	"test.case.name", "test.suite.name", "security_rule.name",
	"cicd.pipeline.name", "cicd.pipeline.task.name", "cicd.worker.name", "deployment.name", "feature_flag.provider.name",
	"host.cpu.family", "process.runtime.name", "nvidia.gpu.source", "ml.correlation.source", "ml.gpu.index",
	"user_agent.name", "user_agent.os.name", "host.image.name", "telemetry.distro.name", "ml.job.name",
	"ml.change.from", "ml.change.to", "ml.change.setting", "ml.problem.evidence", "ml.problem.excluded", "ml.problem.before",
	"cloudfoundry.app.name", "cloudfoundry.org.name", "cloudfoundry.space.name", "service.peer.name", "webengine.name",
	"hw.physical_disk.type", "hw.battery.chemistry",
}

func formOf(key string) string {
	switch {
	case strings.HasSuffix(key, ".path") && (strings.HasPrefix(key, "code.") || strings.HasPrefix(key, "process.")):
		return path
	case key == "service.instance.id":
		return node
	case slices.Contains(labels, key):
		return label
	default:
		return plain
	}
}

// conventions adds the attributes of the newest semantic conventions in the
// module.
func conventions(add func(key, form string)) error {
	attribute, err := build.Import("go.opentelemetry.io/otel/attribute", ".", build.FindOnly)
	if err != nil {
		return err
	}
	versions, err := filepath.Glob(filepath.Join(attribute.Dir, "..", "semconv", "v1.*", "attribute_group.go"))
	if err != nil || len(versions) == 0 {
		return fmt.Errorf("no semantic conventions beside %s: %w", attribute.Dir, err)
	}
	newest := slices.MaxFunc(versions, func(a, b string) int {
		return cmp.Compare(minorOf(a), minorOf(b))
	})
	file, err := parser.ParseFile(token.NewFileSet(), newest, nil, parser.ParseComments)
	if err != nil {
		return err
	}
	for _, declaration := range file.Decls {
		constants, ok := declaration.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, spec := range constants.Specs {
			key, comment := constant(spec.(*ast.ValueSpec))
			if key != "" && (!hasText(comment) || namesAThing(key, comment)) {
				add(key, formOf(key))
			}
		}
	}
	return nil
}

// minorOf returns the minor version of a file's folder: 41 for v1.41.0.
func minorOf(name string) (minor int) {
	if _, err := fmt.Sscanf(filepath.Base(filepath.Dir(name)), "v1.%d.", &minor); err != nil {
		return 0
	}
	return minor
}

// constant returns the key that a constant declares, and its comment.
func constant(spec *ast.ValueSpec) (key, comment string) {
	if len(spec.Values) != 1 || spec.Doc == nil {
		return "", ""
	}
	call, ok := spec.Values[0].(*ast.CallExpr)
	if !ok || len(call.Args) != 1 {
		return "", ""
	}
	return quotedText(call.Args[0]), spec.Doc.Text()
}

// hasText reports whether an attribute may be text. Numbers and booleans need
// no entry, but clients send them as text too.
func hasText(comment string) bool {
	return strings.Contains(comment, "Type: string") || strings.Contains(comment, "Type: any")
}

func namesAThing(key, comment string) bool {
	if slices.Contains(besides, key) {
		return true
	}
	if strings.Contains(comment, "Type: any") || slices.ContainsFunc(personal, func(space string) bool { return strings.HasPrefix(key, space) }) {
		return false
	}
	last := key[strings.LastIndexAny(key, "._")+1:]
	return slices.Contains(nouns, last)
}
