{{- /* A volume with keys of the two secrets of the page. Takes root and the lists access
       and tls. */ -}}
{{- define "otelcol-ml.fleet.volume" -}}
{{- $values := .root.Values.fleet -}}
name: fleet
projected:
  sources:
    - secret:
        name: {{ required "fleet.accessSecret is empty: name the secret with the keys token and readers" $values.accessSecret | quote }}
        items:
          {{- range .access }}
          - {key: {{ . }}, path: {{ . }}}
          {{- end }}
    - secret:
        name: {{ required "fleet.tlsSecret is empty: name the secret with the keys tls.crt, tls.key and ca.crt" $values.tlsSecret | quote }}
        items:
          {{- range .tls }}
          - {key: {{ . }}, path: {{ . }}}
          {{- end }}
{{- end -}}

{{- define "otelcol-ml.fleet.configuration" -}}
{{- include "otelcol-ml.configuration" (dict "root" . "part" "fleet" "file" "fleet.yaml" "changes" "") -}}
{{- end -}}

{{- define "otelcol-ml.fleet.env" -}}
- {name: OTLP_GRPC_ENDPOINT, value: "0.0.0.0:4317"}
- {name: ML_VIEW_ENDPOINT, value: "0.0.0.0:8890"}
- {name: HEALTH_ENDPOINT, value: "0.0.0.0:13133"}
- {name: SELF_METRICS_HOST, value: 0.0.0.0}
- {name: FLEET_TOKEN, value: /etc/fleet/token}
- {name: FLEET_READERS, value: /etc/fleet/readers}
- {name: FLEET_CERT, value: /etc/fleet/tls.crt}
- {name: FLEET_KEY, value: /etc/fleet/tls.key}
{{- with .Values.backends.jaegerURL }}
- {name: JAEGER_URL, value: {{ quote . }}}
{{- end }}
{{- end -}}
