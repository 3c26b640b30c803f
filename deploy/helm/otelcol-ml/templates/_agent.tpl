{{- /* The shipped configuration of the agents. */ -}}
{{- define "otelcol-ml.agent.file" -}}
{{- ternary "agent-gateway.yaml" "agent.yaml" .Values.gateway.enabled -}}
{{- end -}}

{{- /* What Kubernetes changes of it. */ -}}
{{- define "otelcol-ml.agent.changes" -}}
{{- $attributes := .Values.agent.kubernetesAttributes -}}
{{- $config := .Files.Get (printf "files/%s" (include "otelcol-ml.agent.file" .)) | fromYaml -}}
{{- if .Values.gpu.enabled -}}
# For the readers of GPUs, which are believed: the network policy lets nobody else in.
receivers:
  otlp/collectors:
    protocols:
      grpc:
        endpoint: 0.0.0.0:4319
        max_recv_msg_size_mib: 4
        middlewares: [{id: ml_guard}]
connectors:
  forward/collectors:
{{ end -}}
{{- if include "otelcol-ml.tlsSecret" . -}}
exporters:
  load_balancing:
    protocol:
      otlp:
        tls:
          insecure: false
          ca_file: /etc/gateway-tls/ca.crt
          # Agents connect to addresses, which no certificate has.
          server_name_override: {{ include "otelcol-ml.partName" (dict "root" . "part" "gateway") }}
          {{- include "otelcol-ml.tlsFiles" . | nindent 10 }}
{{ end -}}
{{- if or $attributes .Values.gpu.enabled -}}
processors:
{{- if .Values.gpu.enabled }}
  ml_guard/collectors:
    trusted_senders: [any]
{{- end }}
{{- if $attributes }}
  k8s_attributes:
    filter:
      node_from_env_var: NODE_NAME
    extract:
      metadata: [k8s.namespace.name, k8s.pod.name, k8s.pod.uid, k8s.node.name, k8s.job.name, k8s.job.uid]
    pod_association:
      - sources: [{from: resource_attribute, name: k8s.pod.uid}]
      - sources: [{from: connection}]
    # What they send is about the node, and not about their own pods.
    exclude:
      pods: [{name: "^{{ include "otelcol-ml.partName" (dict "root" . "part" "gpu") }}-[a-z0-9]+$"}]
{{- end }}
{{ end -}}
service:
  pipelines:
    {{- include "otelcol-ml.pipelines" (dict "config" $config "kubernetesAttributes" $attributes "gpu" .Values.gpu.enabled) | nindent 4 }}
    {{- if .Values.gpu.enabled }}
    {{- range list "metrics" "logs" }}
    {{ . }}/collectors:
      receivers: [otlp/collectors]
      processors: [ml_guard/collectors]
      exporters: [forward/collectors]
    {{- end }}
    {{- end }}
{{- end -}}

{{- /* logs-kubernetes.yaml, with what its lists replace. */ -}}
{{- define "otelcol-ml.agent.lines" -}}
{{- $config := .Files.Get (printf "files/%s" (include "otelcol-ml.agent.file" .)) | fromYaml -}}
{{- $lines := .Files.Get "files/logs-kubernetes.yaml" | fromYaml -}}
{{- $_ := set $lines.service "extensions" (uniq (concat $config.service.extensions $lines.service.extensions)) -}}
{{- /* In a pod the name of the host is that of the pod. */ -}}
{{- $_ := set $lines "processors" (dict "resource/lines" (dict "attributes" (list (dict "key" "host.name" "value" "${env:NODE_NAME}" "action" "upsert")))) -}}
{{- $_ := set (index $lines.service.pipelines "logs/lines") "processors" (list "ml_guard" "memory_limiter" "resource/lines") -}}
{{- $_ := set $lines.service.pipelines "traces/in" (dict "receivers" (concat (index $config.service.pipelines "traces/in" "receivers") (list "ml_lines"))) -}}
{{- toYaml $lines -}}
{{- end -}}

{{- define "otelcol-ml.agent.configuration" -}}
{{- $lines := "" -}}
{{- if .Values.agent.trainingLogs -}}
{{- $lines = include "otelcol-ml.agent.lines" . -}}
{{- end -}}
{{- include "otelcol-ml.configuration" (dict "root" . "part" "agent" "file" (include "otelcol-ml.agent.file" .) "changes" (include "otelcol-ml.agent.changes" .) "lines" $lines) -}}
{{- end -}}

{{- define "otelcol-ml.agent.env" -}}
{{ include "otelcol-ml.receiverEnv" . }}
- {name: OTLP_HTTP_ENDPOINT, value: "0.0.0.0:4318"}
- {name: OTELCOL_ML_REPRO_DIR, value: /state/reproductions}
{{- if or .Values.agent.trainingLogs (not .Values.gateway.enabled) }}
- {name: OTELCOL_ML_STATE_DIR, value: /state/page}
{{- end }}
{{- if .Values.gateway.enabled }}
- {name: OTELCOL_ML_QUEUE_DIR, value: /state/queue}
- {name: GATEWAY_HOST, value: {{ include "otelcol-ml.partName" (dict "root" . "part" "gateway") }}.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}.}
- {name: GATEWAY_PORT, value: "4317"}
{{- else }}
- {name: PROMETHEUS_ENDPOINT, value: "0.0.0.0:8889"}
- {name: JAEGER_URL, value: {{ .Values.backends.jaegerURL | quote }}}
{{ include "otelcol-ml.backendEnv" . }}
{{- end }}
{{- if or .Values.agent.kubernetesAttributes .Values.agent.trainingLogs }}
- name: NODE_NAME
  valueFrom: {fieldRef: {fieldPath: spec.nodeName}}
{{- end }}
{{- end -}}
