{{- /* The configuration of a part: the shipped file, what Kubernetes changes of it, what
       reads logs of trainings, and what the values change. The collector merges them in the
       order of their names. Takes root, part, the shipped file's name, and the changes and
       lines as text. */ -}}
{{- define "otelcol-ml.configuration" -}}
config.yaml: |
  {{- .root.Files.Get (printf "files/%s" .file) | nindent 2 }}
{{- with .changes }}
kubernetes.yaml: |
  {{- . | nindent 2 }}
{{- end }}
{{- with .lines }}
lines.yaml: |
  {{- . | nindent 2 }}
{{- end }}
{{- with (index .root.Values .part).config }}
values.yaml: |
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* The objects that every part has. Takes root, part and its configuration. */ -}}
{{- define "otelcol-ml.common" -}}
apiVersion: v1
kind: ConfigMap
metadata:
  {{- include "otelcol-ml.metadata" . | nindent 2 }}
data:
  {{- .configuration | nindent 2 }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "otelcol-ml.metadata" . | nindent 2 }}
# A pod that needs the token asks for it.
automountServiceAccountToken: false
{{- end -}}

{{- /* The shipped file's pipelines as this pod needs them: without the gpu receiver,
       because the GPUs are read by a pod of their own, which sends to forward/collectors,
       and with k8s_attributes before ml_enrich where asked for. Takes config, which is
       the parsed file, gpu, true if there is such a pod, and kubernetesAttributes. */ -}}
{{- define "otelcol-ml.pipelines" -}}
{{- $pipelines := dict -}}
{{- $attributes := .kubernetesAttributes -}}
{{- range $name, $pipeline := .config.service.pipelines -}}
{{- $changed := dict -}}
{{- if has "gpu" $pipeline.receivers -}}
{{- $_ := set $changed "receivers" (concat (without $pipeline.receivers "gpu") (ternary (list "forward/collectors") list $.gpu)) -}}
{{- end -}}
{{- if and $attributes (has "ml_enrich" $pipeline.processors) -}}
{{- $processors := list -}}
{{- range $pipeline.processors -}}
{{- if eq . "ml_enrich" -}}
{{- $processors = append $processors "k8s_attributes" -}}
{{- end -}}
{{- $processors = append $processors . -}}
{{- end -}}
{{- $_ := set $changed "processors" $processors -}}
{{- end -}}
{{- if $changed -}}
{{- $_ := set $pipelines $name $changed -}}
{{- end -}}
{{- end -}}
{{- toYaml $pipelines -}}
{{- end -}}

{{- /* Labels and annotations of a pod. Takes root, part and its configuration, a change
       of which replaces the pods. */ -}}
{{- define "otelcol-ml.podMetadata" -}}
{{- $values := index .root.Values .part -}}
labels:
  {{- mergeOverwrite (deepCopy $values.podLabels) (include "otelcol-ml.selector" . | fromYaml) | toYaml | nindent 2 }}
annotations:
  {{- mergeOverwrite (deepCopy $values.podAnnotations) (dict "checksum/config" (sha256sum .configuration)) | toYaml | nindent 2 }}
{{- end -}}

{{- /* What all pods have in common. */ -}}
{{- define "otelcol-ml.podSpec" -}}
{{- $values := index .root.Values .part -}}
serviceAccountName: {{ include "otelcol-ml.partName" . }}
# Variables of other services in the namespace could be those of the configuration.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ quote . }}
  {{- end }}
{{- end }}
{{- with $values.priorityClassName }}
priorityClassName: {{ quote . }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /* The collector's container, without what a part adds. Takes root, part, its
       configuration, env, which is a list as text, and queue, true if the part has a
       queue on disk. */ -}}
{{- define "otelcol-ml.container" -}}
{{- $values := index .root.Values .part -}}
name: otelcol-ml
image: {{ include "otelcol-ml.image" . }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
{{- if .queue }}
# Moves damaged files of the queue away, which would end every start.
command: [/queuecheck, /state/queue, /otelcol-ml]
{{- end }}
args:
  {{- range $name, $_ := fromYaml .configuration }}
  - --config=/etc/otelcol-ml/{{ $name }}
  {{- end }}
env:
  {{- $own := dict }}
  {{- range $values.env }}
  {{- $_ := set $own .name true }}
  {{- end }}
  {{- $memory := include "otelcol-ml.memoryMiB" (dict "limit" $values.resources.limits.memory "share" 0.6) }}
  {{- with ($values.resources.requests).memory }}
  {{- if gt (include "otelcol-ml.memoryMiB" (dict "limit" . "share" 0.6) | int64) ($memory | int64) }}
  {{- fail (printf "%s.resources.requests.memory is %v: it must be at most limits.memory, which is %v" $.part . $values.resources.limits.memory) }}
  {{- end }}
  {{- end }}
  {{- range concat (list (dict "name" "GOGC" "value" "200") (dict "name" "GOMEMLIMIT" "value" (printf "%sMiB" $memory))) (fromYamlArray .env) }}
  {{- if not (hasKey $own .name) }}
  - {{ toJson . }}
  {{- end }}
  {{- end }}
  {{- with $values.env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
resources:
  {{- toYaml $values.resources | nindent 2 }}
# Before it is ready, the collector compacts the queue on disk.
startupProbe:
  httpGet: {path: /, port: health}
  periodSeconds: 2
  failureThreshold: 60
readinessProbe:
  httpGet: {path: /, port: health}
  periodSeconds: 5
livenessProbe:
  httpGet: {path: /, port: health}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
{{- end -}}

{{- /* Whose volumes are. Takes root. */ -}}
{{- define "otelcol-ml.podSecurity" -}}
{{- with .Values.runAsUser -}}
fsGroup: {{ int64 . }}
{{ end -}}
fsGroupChangePolicy: OnRootMismatch
{{- end -}}

{{- define "otelcol-ml.unprivileged" -}}
runAsNonRoot: true
{{- with .Values.runAsUser }}
runAsUser: {{ int64 . }}
runAsGroup: {{ int64 . }}
{{- end }}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{- /* Variables of the shipped configurations in a pod that receives. */ -}}
{{- define "otelcol-ml.receiverEnv" -}}
- {name: OTLP_GRPC_ENDPOINT, value: "0.0.0.0:4317"}
- {name: HEALTH_ENDPOINT, value: "0.0.0.0:13133"}
- {name: SELF_METRICS_HOST, value: 0.0.0.0}
{{- with .Values.hashKeySecret }}
{{- if .name }}
- name: OTELCOL_ML_HASH_KEY
  valueFrom: {secretKeyRef: {name: {{ quote .name }}, key: {{ quote .key }}}}
{{- end }}
{{- end }}
{{- end -}}

{{- /* Variables of the shipped configurations in a pod that sends to the back ends. */ -}}
{{- define "otelcol-ml.backendEnv" -}}
{{- with .Values.backends -}}
- {name: JAEGER_ENDPOINT, value: {{ required "backends.traces.endpoint is empty: name the server that gets the traces, host:port" .traces.endpoint | quote }}}
- {name: JAEGER_INSECURE, value: {{ .traces.insecure | quote }}}
- {name: LOGS_EXPORTER, value: {{ ternary "otlp_grpc/logs" "debug" (ne .logs.endpoint "") }}}
{{- if .logs.endpoint }}
- {name: LOGS_ENDPOINT, value: {{ .logs.endpoint | quote }}}
- {name: LOGS_INSECURE, value: {{ .logs.insecure | quote }}}
{{- end }}
{{- end }}
{{- end -}}

{{- /* The ports of a part that receives, by name, as JSON. */ -}}
{{- define "otelcol-ml.ports" -}}
{{- $ports := dict "otlp-grpc" 4317 "self-metrics" 8888 -}}
{{- if eq .part "agent" -}}
{{- $_ := set $ports "otlp-http" 4318 -}}
{{- if .root.Values.gpu.enabled -}}
{{- $_ := set $ports "collectors" 4319 -}}
{{- end -}}
{{- end -}}
{{- if eq .part "fleet" -}}
{{- $_ := set $ports "page" 8890 -}}
{{- end -}}
{{- $exposed := ternary (not .root.Values.backends.remoteWriteURL) (and (eq .part "agent") (not .root.Values.gateway.enabled)) (eq .part "gateway") -}}
{{- if $exposed -}}
{{- $_ := set $ports "metrics" 8889 -}}
{{- end -}}
{{- toJson $ports -}}
{{- end -}}

{{- define "otelcol-ml.scrapedPorts" -}}
{{- $ports := list (dict "port" "self-metrics") -}}
{{- if hasKey (include "otelcol-ml.ports" . | fromJson) "metrics" -}}
{{- $ports = append $ports (dict "port" "metrics") -}}
{{- end -}}
{{- toJson $ports -}}
{{- end -}}

{{- define "otelcol-ml.containerPorts" -}}
{{- range $name, $port := include "otelcol-ml.ports" . | fromJson -}}
- {name: {{ $name }}, containerPort: {{ $port }}}
{{ end -}}
- {name: health, containerPort: 13133}
{{- end -}}

{{- define "otelcol-ml.servicePorts" -}}
{{- range $name, $port := include "otelcol-ml.ports" . | fromJson -}}
- {name: {{ $name }}, port: {{ $port }}, targetPort: {{ $name }}}
{{ end -}}
{{- end -}}

{{- define "otelcol-ml.secretMounts" -}}
{{- $mounts := list -}}
{{- range $i, $secret := . -}}
{{- $mounts = append $mounts (dict "name" (printf "secret-%d" $i) "mountPath" .path "readOnly" true) -}}
{{- end -}}
{{- toYaml $mounts -}}
{{- end -}}

{{- define "otelcol-ml.secretVolumes" -}}
{{- $volumes := list -}}
{{- range $i, $secret := . -}}
{{- $volumes = append $volumes (dict "name" (printf "secret-%d" $i) "secret" (dict "secretName" .secret)) -}}
{{- end -}}
{{- toYaml $volumes -}}
{{- end -}}
