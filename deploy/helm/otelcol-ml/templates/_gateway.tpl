{{- /* The secret of the certificate that agents and gateways show each other, if they do. */ -}}
{{- define "otelcol-ml.tlsSecret" -}}
{{- if and .Values.gateway.enabled .Values.tls.enabled -}}
{{- default (printf "%s-%s" (include "otelcol-ml.partName" (dict "root" . "part" "gateway")) (ternary "issued" "tls" (ne .Values.tls.issuer ""))) .Values.tls.secret -}}
{{- end -}}
{{- end -}}

{{- /* The files of the certificate. Collectors read them anew when it is renewed. */ -}}
{{- define "otelcol-ml.tlsFiles" -}}
cert_file: /etc/gateway-tls/tls.crt
key_file: /etc/gateway-tls/tls.key
reload_interval: 1h
{{- end -}}

{{- define "otelcol-ml.gateway.changes" -}}
{{- $changes := dict -}}
{{- if .Values.fleet.enabled -}}
{{- $changes = .Files.Get "files/to-fleet.yaml" | fromYaml -}}
{{- end -}}
{{- if include "otelcol-ml.tlsSecret" . -}}
{{- $tls := merge (dict "client_ca_file" "/etc/gateway-tls/ca.crt" "client_ca_file_reload" true) (include "otelcol-ml.tlsFiles" . | fromYaml) -}}
{{- $_ := set $changes "receivers" (dict "otlp" (dict "protocols" (dict "grpc" (dict "tls" $tls)))) -}}
{{- end -}}
{{- with $changes -}}
{{- toYaml . -}}
{{- end -}}
{{- end -}}

{{- define "otelcol-ml.gateway.configuration" -}}
{{- include "otelcol-ml.configuration" (dict "root" . "part" "gateway" "file" "gateway.yaml" "changes" (include "otelcol-ml.gateway.changes" .)) -}}
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
