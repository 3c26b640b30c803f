{{- define "otelcol-ml.gateway.configuration" -}}
{{- include "otelcol-ml.configuration" (dict "root" . "part" "gateway" "file" "gateway.yaml" "changes" (ternary (.Files.Get "files/to-fleet.yaml") "" .Values.fleet.enabled)) -}}
{{- end -}}

{{- define "otelcol-ml.gateway.env" -}}
{{- $url := .Values.backends.remoteWriteURL -}}
{{ include "otelcol-ml.receiverEnv" . }}
- {name: OTELCOL_ML_QUEUE_DIR, value: /state/queue}
# The network policy lets only agents in.
- {name: OTELCOL_ML_TRUSTED_SENDERS, value: "[any]"}
{{- if $url }}
- {name: METRICS_EXPORTER, value: prometheus_remote_write}
- {name: REMOTE_WRITE_URL, value: {{ $url | quote }}}
{{- else }}
- {name: PROMETHEUS_ENDPOINT, value: "0.0.0.0:8889"}
{{- end }}
{{- if .Values.fleet.enabled }}
- {name: FLEET_ENDPOINT, value: {{ printf "%s.%s.svc:4317" (include "otelcol-ml.partName" (dict "root" . "part" "fleet")) .Release.Namespace }}}
- {name: FLEET_TOKEN, value: /etc/fleet/token}
- {name: FLEET_CA, value: /etc/fleet/ca.crt}
{{- end }}
{{ include "otelcol-ml.backendEnv" . }}
{{- end -}}
