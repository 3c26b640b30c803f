{{- define "otelcol-ml.gateway.configuration" -}}
{{- include "otelcol-ml.configuration" (dict "root" . "part" "gateway" "file" "gateway.yaml" "changes" "") -}}
{{- end -}}

{{- define "otelcol-ml.gateway.env" -}}
{{- $url := .Values.backends.remoteWriteURL -}}
{{ include "otelcol-ml.receiverEnv" . }}
- {name: OTELCOL_ML_QUEUE_DIR, value: /state/queue}
{{- if $url }}
- {name: METRICS_EXPORTER, value: prometheus_remote_write}
- {name: REMOTE_WRITE_URL, value: {{ $url | quote }}}
{{- else }}
- {name: PROMETHEUS_ENDPOINT, value: "0.0.0.0:8889"}
{{- end }}
{{ include "otelcol-ml.backendEnv" . }}
{{- end -}}
